/** A host: its providers, devices, instances and events, and its acts. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { className, count, counted, dateTime, percent, shortAmount } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { go, Link } from "../page/router.js";
import { ActDialog } from "../parts/act.js";
import { Card, Facts, Head, Loaded, Meter, Table, When } from "../parts/elements.js";
import { TextField } from "../parts/fields.js";
import { drainPath, instanceLink, operationLink } from "../parts/links.js";
import { Story } from "../parts/story.js";
import { OpenDrains } from "../work/drain_progress.js";
import { StatusBadge } from "../work/frame.js";
import { Numa } from "./numa.js";
import { ProviderTree } from "./provider_tree.js";

/** @param {{parts: string[]}} props */
export function HostView({ parts }) {
  const name = parts[1] ?? "";
  const path = `/hosts/${encodeURIComponent(name)}`;
  const loaded = useLoad((signal) => call("GET", path, { signal }), [name], { everyMs: 4000 });
  const head = h(Head, { crumbs: h(Link, { to: "/" }, "Fleet"), title: name });
  return h(Loaded, { of: loaded, head, children: (host) => h(Whole, { host, again: loaded.again }) });
}

/** @param {{host: any, again: () => void}} props */
function Whole({ host, again }) {
  return h(
    "div",
    {},
    h(Head, {
      crumbs: [h(Link, { to: "/" }, "Fleet"), " / ", host.zones.join(", ") || "no zone"],
      title: [host.node, " ", h(States, { host })],
      second: [
        host.host === host.node ? "" : `service ${host.host} · `,
        counted(host.instances, "instance"),
        host.facts.rack ? ` · rack ${host.facts.rack}` : "",
        host.aggregates.length ? ` · ${host.aggregates.map((/** @type {any} */ each) => each.name).join(", ")}` : "",
      ],
      acts: h(HostActs, { host, again }),
    }),
    h(
      "div",
      { class: "stack" },
      host.disabled
        ? h(
            "div",
            { class: "notice" },
            h("strong", {}, "Disabled"),
            host.disabled_reason ? `: ${host.disabled_reason}` : " without a reason",
            host.disabled_by ? ` · by ${host.disabled_by}` : "",
            host.disabled_at_s ? [" · ", h(When, { seconds: host.disabled_at_s })] : "",
          )
        : null,
      h(Amounts, { resources: host.resources }),
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "stack" },
          may("operations:list") ? h(OpenDrains, { host: host.host }) : null,
          may("hosts:providers") ? h(Providers, { node: host.node }) : null,
          h(Numa, { facts: host.facts }),
          may("instances:list") ? h(Instances, { host }) : null,
        ),
        h("div", { class: "stack" }, h(Details, { host }), may("hosts:events") ? h(Events, { node: host.node }) : null),
      ),
    ),
  );
}

/** @param {{host: any}} props */
function States({ host }) {
  const badge = (/** @type {string} */ tone, /** @type {string} */ text) =>
    h("span", { key: text, class: `badge ${tone}` }, text);
  return [
    host.up ? badge("granted", "✓ up") : badge("refused", host.forced_down ? "✕ forced down" : "✕ down"),
    " ",
    host.disabled ? badge("", "disabled") : badge("granted", "✓ enabled"),
  ];
}

/** @param {{host: any, again: () => void}} props */
function HostActs({ host, again }) {
  const [dialog, setDialog] = useState("");
  const [reason, setReason] = useState("");
  const button = (/** @type {string} */ name, /** @type {string} */ text) =>
    h("button", { key: name, class: "button", type: "button", onClick: () => setDialog(name) }, text);
  const bodies = /** @type {Record<string, any>} */ ({
    disable: { disabled: true, disabled_reason: reason },
    enable: { disabled: false },
    down: { forced_down: true },
    up: { forced_down: false },
  });
  const words = /** @type {Record<string, [string, string]>} */ ({
    disable: ["Disable", "It gets no new instances. Those on it stay."],
    enable: ["Enable", "It gets new instances again."],
    down: [
      "Force down",
      "It counts as down whatever it reports, so its instances can be evacuated. Make sure that it runs no guests.",
    ],
    up: ["End forced down", "It is up again when it reports."],
  });
  const [verb, about] = words[dialog] ?? ["", ""];
  return [
    may("services:update")
      ? [
          host.disabled ? button("enable", "Enable …") : button("disable", "Disable …"),
          host.forced_down ? button("up", "End forced down …") : button("down", "Force down …"),
        ]
      : null,
    may("hosts:drain")
      ? h(
          "button",
          { key: "drain", class: "button primary", type: "button", onClick: () => go(drainPath([host.node])) },
          "Plan a drain",
        )
      : null,
    dialog
      ? h(
          ActDialog,
          {
            key: "dialog",
            title: `${verb} ${host.host}`,
            verb,
            isDanger: dialog === "down",
            act: () => call("PATCH", `/services/${encodeURIComponent(host.host)}`, { body: bodies[dialog] }),
            onClose: () => setDialog(""),
            onDone: again,
          },
          h("p", {}, about),
          dialog === "disable"
            ? h(TextField, { label: "Reason", value: reason, onText: setReason, maxLength: 255 })
            : null,
        )
      : null,
  ];
}

const FIRST = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

/** @param {{resources: Record<string, any>}} props */
function Amounts({ resources }) {
  const rank = (/** @type {string} */ name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  const rows = Object.entries(resources).sort(([left], [right]) => rank(left) - rank(right));
  return h(
    "div",
    { class: "cards small-cards" },
    rows.map(([name, use]) =>
      h(
        "section",
        { class: "card", key: name },
        h("div", { class: "figure-row" }, h("h2", {}, className(name)), `of ${shortAmount(name, use.capacity)}`),
        h("div", { class: "figure" }, use.capacity ? percent(use.share) : "–"),
        h(Meter, { share: use.share, label: `${className(name)} ${percent(use.share)} used` }),
        h("div", { class: "second" }, `${shortAmount(name, use.used)} used, ${shortAmount(name, use.free)} free`),
      ),
    ),
  );
}

/** @param {{node: string}} props */
function Providers({ node }) {
  const loaded = useLoad((signal) => call("GET", `/hosts/${encodeURIComponent(node)}/providers`, { signal }), [node], {
    everyMs: 5000,
  });
  return h(
    Card,
    { title: "Providers and their consumers", second: "Choose an instance to see all that it holds here." },
    h(Loaded, { of: loaded, children: (tree) => h(ProviderTree, { tree }) }),
  );
}

/** @param {{host: any}} props */
function Instances({ host }) {
  const loaded = useLoad(
    (signal) => call("GET", "/instances", { query: { host: host.host, limit: 100 }, signal }),
    [host.host],
    { everyMs: 4000 },
  );
  return h(
    Card,
    { title: "Instances", flush: true },
    h(Loaded, {
      of: loaded,
      children: (page) => [
        h(Table, {
          key: "table",
          label: "Instances on this host",
          rows: page.instances,
          keyOf: (row) => row.uuid,
          empty: "None.",
          columns: [
            { title: "Name", cell: (row) => instanceLink(row.uuid, row.name) },
            { title: "Status", cell: (row) => h(StatusBadge, { status: row.status, task: row.task }) },
            { title: "Project", cell: (row) => row.project_id || "–" },
            { title: "Changed", isNumber: true, cell: (row) => h(When, { seconds: row.changed_at_s }) },
          ],
        }),
        page.next
          ? h(
              "p",
              { key: "more", class: "card-end" },
              h(Link, { to: `/instances?host=${encodeURIComponent(host.host)}` }, "All instances on this host"),
            )
          : null,
      ],
    }),
  );
}

/** @param {{host: any}} props */
function Details({ host }) {
  const { facts } = host;
  /** @type {[any, any][]} */
  const rows = [
    ["Service", host.host],
    ["Root provider", h("span", { class: "mono" }, host.uuid)],
    ["Zone", host.zones.join(", ") || "–"],
  ];
  if (facts.hypervisor_type) rows.push(["Hypervisor", facts.hypervisor_type]);
  if (facts.host_ip) rows.push(["Address", facts.host_ip]);
  if (facts.cell) rows.push(["Cell", facts.cell]);
  if (facts.num_io_ops) rows.push(["I/O operations", count(facts.num_io_ops)]);
  if (facts.failed_builds) rows.push(["Failed builds", count(facts.failed_builds)]);
  if (facts.reported_at_s) rows.push(["Last report", dateTime(facts.reported_at_s)]);
  return h(
    Card,
    { title: "Details" },
    h(Facts, { rows }),
    may("migrations:list")
      ? h(
          "p",
          { class: "second below" },
          h(Link, { to: `/migrations?status=any&source=${encodeURIComponent(host.host)}` }, "Migrations from here"),
          " · ",
          h(Link, { to: `/migrations?status=any&target=${encodeURIComponent(host.host)}` }, "to here"),
        )
      : null,
  );
}

/** @param {{node: string}} props */
function Events({ node }) {
  const loaded = useLoad(
    (signal) => call("GET", `/hosts/${encodeURIComponent(node)}/events`, { query: { limit: 100 }, signal }),
    [node],
    { everyMs: 4000 },
  );
  return h(
    Card,
    { title: "Events", flush: true },
    h(Loaded, {
      of: loaded,
      children: ({ events }) =>
        h(Story, {
          events,
          isNewestFirst: true,
          label: "Events of this host",
          operationLink,
        }),
    }),
  );
}
