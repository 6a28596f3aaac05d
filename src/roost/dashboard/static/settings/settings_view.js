/** The settings in force with their sources, the rules in their order, the audit, and the latest changes. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { count, counted } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Link } from "../page/router.js";
import { Card, Head, Loaded, NoRight, Table } from "../parts/elements.js";
import { Input } from "../parts/fields.js";
import { chosenOf, ChoiceFilter, SelectFilter } from "../parts/filters.js";
import { Audit } from "./audit.js";
import { ShortChanges } from "./changes_view.js";

/** @typedef {import("../policies/sets.js").Setting} Setting */
/** @typedef {import("../policies/sets.js").Rule} Rule */

export function SettingsView() {
  const canShow = may("settings:show");
  const loaded = useLoad(
    (signal) => (canShow ? call("GET", "/settings", { signal }) : Promise.resolve(null)),
    [canShow],
  );
  const fingerprint = loaded.data?.fingerprint;
  return h(
    "div",
    {},
    h(Head, {
      title: "Settings",
      second: fingerprint ? ["Fingerprint ", h("span", { class: "mono" }, fingerprint)] : null,
      acts: may("comparisons:create")
        ? h(Link, { class: "button", to: "/policies" }, "Compare with other settings")
        : null,
    }),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        canShow
          ? h(Loaded, {
              of: loaded,
              children: (data) =>
                data
                  ? h(
                      "div",
                      { class: "stack" },
                      h(Restart, { names: data.needs_restart }),
                      h(All, { settings: data.settings }),
                      h(Rules, { rules: data.rules, settings: data.settings }),
                    )
                  : null,
            })
          : h(NoRight, { to: "see the settings" }),
      ),
      h("div", { class: "stack" }, h(Audit, {}), h(Latest, {})),
    ),
  );
}

/** @param {{names: string[]}} props */
function Restart({ names }) {
  if (!names.length) return null;
  return h(
    "div",
    { class: "notice" },
    `${counted(names.length, "setting")} in the file ${names.length === 1 ? "differs" : "differ"} from the value in force, and ${
      names.length === 1 ? "needs" : "need"
    } a restart of the server: `,
    h("code", {}, names.join(", ")),
  );
}

/** @param {{rules: Rule[], settings: Setting[]}} props */
function Rules({ rules, settings }) {
  const byName = new Map(settings.map((each) => [`${each.section}.${each.key}`, each]));
  const filters = rules.filter((each) => each.kind === "filter");
  const weighers = rules.filter((each) => each.kind === "weigher");
  const options = (/** @type {Rule} */ rule) =>
    rule.settings
      .filter((name) => !/weight_multiplier$/.test(name))
      .map((name) =>
        h("div", { key: name, class: "second" }, h("code", {}, `${name} = ${valueText(byName.get(name)?.value)}`)),
      );
  const nameCell = (/** @type {Rule} */ row) =>
    h("div", {}, row.name, row.nova_name ? h("span", { class: "second" }, ` ${row.nova_name}`) : null, options(row));
  return h(
    "div",
    { class: "halves" },
    h(
      Card,
      { title: counted(filters.length, "filter"), second: "In the order in which they judge hosts", flush: true },
      h(Table, {
        label: "Filters in their order",
        rows: filters.map((each, at) => ({ ...each, at: at + 1 })),
        keyOf: (row) => row.name,
        columns: [
          { title: "No.", isNumber: true, cell: (row) => row.at },
          { title: "Filter and options", cell: nameCell },
        ],
      }),
    ),
    h(
      Card,
      {
        title: counted(weighers.length, "weigher"),
        second: "A multiplier of 0 has no effect; a negative one reverses the order",
        flush: true,
      },
      h(Table, {
        label: "Weighers",
        rows: weighers,
        keyOf: (row) => row.name,
        columns: [
          { title: "Weigher and options", cell: nameCell },
          {
            title: "Multiplier",
            isNumber: true,
            cell: (row) => h("span", { class: row.multiplier ? "strong" : "zero" }, count(row.multiplier)),
          },
        ],
      }),
    ),
  );
}

/** @param {{settings: Setting[]}} props */
function All({ settings }) {
  const section = chosenOf("section");
  const shown = chosenOf("shown", "set");
  const [text, setText] = useState("");
  const sections = [...new Set(settings.map((each) => each.section))];
  const wanted = text.trim().toLowerCase();
  const rows = settings.filter(
    (each) =>
      (!section || each.section === section) &&
      (shown === "all" || wanted || each.source !== "default") &&
      (!wanted || `${each.section}.${each.key} ${each.description}`.toLowerCase().includes(wanted)),
  );
  return h(
    Card,
    {
      title: "Settings in force, with their sources",
      second: `${count(rows.length)} of ${counted(settings.length, "setting")}; passwords and other secrets are masked`,
      flush: true,
    },
    h(
      "div",
      { class: "bar-of-tools card-tools" },
      h(ChoiceFilter, {
        name: "shown",
        label: "Settings shown",
        usual: "set",
        options: [
          { value: "set", name: "Set explicitly" },
          { value: "all", name: "All" },
        ],
      }),
      h(SelectFilter, {
        name: "section",
        label: "Section",
        options: [{ value: "", name: "All sections" }, ...sections.map((each) => ({ value: each, name: `[${each}]` }))],
      }),
      h(Input, {
        type: "search",
        placeholder: "Find a setting",
        "aria-label": "Find a setting by its name or purpose",
        value: text,
        onText: setText,
      }),
    ),
    h(Table, {
      label: "Settings in force",
      rows,
      keyOf: (row) => `${row.section}.${row.key}`,
      empty: shown === "set" && !wanted ? "All settings have their defaults." : "No setting matches.",
      columns: [
        {
          title: "Setting",
          cell: (row) =>
            h(
              "div",
              { class: "setting-name" },
              h("span", { class: "mono" }, `${row.section}.${row.key}`),
              h("div", { class: "second" }, row.description),
            ),
        },
        {
          title: "Value",
          cell: (row) =>
            h(
              "div",
              { class: "setting-value" },
              h("code", {}, valueText(row.value)),
              row.source !== "default" && valueText(row.value) !== valueText(row.default)
                ? h("div", { class: "second" }, `default ${valueText(row.default)}`)
                : null,
            ),
        },
        {
          title: "Source",
          class: "setting-source",
          cell: (row) => h("span", { class: row.source === "default" ? "zero" : "" }, row.source),
        },
      ],
    }),
  );
}

/** @param {any} value */
const valueText = (value) => (value === undefined ? "–" : JSON.stringify(value));

function Latest() {
  const loaded = useLoad(
    (signal) =>
      may("changes:list") ? call("GET", "/changes", { query: { limit: 8 }, signal }) : Promise.resolve(null),
    [],
    { everyMs: 10_000 },
  );
  if (!may("changes:list")) return null;
  return h(
    Card,
    {
      title: "Latest changes",
      acts: h(Link, { class: "button small", to: "/settings/changes" }, "All changes"),
      flush: true,
    },
    h(Loaded, { of: loaded, children: (page) => h(ShortChanges, { changes: page.changes }) }),
  );
}
