/** What people do with the hosts that they selected on the map. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { counted } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { go } from "../page/router.js";
import { ActDialog } from "../parts/act.js";
import { Problem } from "../parts/elements.js";
import { SelectField, TextField } from "../parts/fields.js";
import { drainPath } from "../parts/links.js";
import { nameOf } from "./fleet_data.js";

/** @param {{hosts: number[], onEnd: () => void}} props */
export function SelectionBar({ hosts, onEnd }) {
  const [dialog, setDialog] = useState("");
  const names = hosts.map(nameOf);
  const close = () => setDialog("");
  return h(
    "div",
    { class: "map-tools bar-of-tools", role: "group", "aria-label": "Selected hosts" },
    h("strong", { role: "status" }, `${counted(hosts.length, "host")} selected`),
    may("services:update")
      ? [
          h("button", { key: "d", class: "button", type: "button", onClick: () => setDialog("disable") }, "Disable …"),
          h("button", { key: "e", class: "button", type: "button", onClick: () => setDialog("enable") }, "Enable …"),
        ]
      : null,
    may("hosts:drain")
      ? h(
          "button",
          {
            class: "button",
            type: "button",
            onClick: () => go(drainPath(names)),
          },
          "Plan a drain",
        )
      : null,
    may("aggregates:hosts:update")
      ? h("button", { class: "button", type: "button", onClick: () => setDialog("aggregate") }, "Add to an aggregate …")
      : null,
    h("button", { class: "button plain", type: "button", onClick: onEnd }, "Clear"),
    dialog === "disable" || dialog === "enable"
      ? h(ServiceDialog, { names, isDisabling: dialog === "disable", onClose: close, onDone: onEnd })
      : null,
    dialog === "aggregate" ? h(AggregateDialog, { names, onClose: close, onDone: onEnd }) : null,
  );
}

/** Do the same for many hosts, and say which failed. @param {string[]} names @param {(name: string) => Promise<unknown>} act @param {(done: number) => void} onStep */
async function forEach(names, act, onStep) {
  const failed = [];
  for (const [at, name] of names.entries()) {
    try {
      await act(name);
    } catch (error) {
      failed.push(`${name}: ${/** @type {Error} */ (error).message}`);
    }
    onStep(at + 1);
  }
  if (failed.length)
    throw new Error(failed.slice(0, 5).join(" · ") + (failed.length > 5 ? ` · and ${failed.length - 5} more` : ""));
}

/** The name of the service of a node: what the service routes take. @param {string} node @returns {Promise<string>} */
const serviceOf = async (node) => (await call("GET", `/hosts/${encodeURIComponent(node)}`)).host;

/** @param {{names: string[], isDisabling: boolean, onClose: () => void, onDone: () => void}} props */
function ServiceDialog({ names, isDisabling, onClose, onDone }) {
  const [reason, setReason] = useState("");
  const body = isDisabling ? { disabled: true, disabled_reason: reason } : { disabled: false };
  const act = async (/** @type {string} */ name) =>
    call("PATCH", `/services/${encodeURIComponent(await serviceOf(name))}`, { body });
  return h(
    HostsDialog,
    { verb: isDisabling ? "Disable" : "Enable", names, act, onClose, onDone },
    isDisabling ? h(TextField, { label: "Reason", value: reason, onText: setReason, maxLength: 255 }) : null,
  );
}

/** @param {{names: string[], onClose: () => void, onDone: () => void}} props */
function AggregateDialog({ names, onClose, onDone }) {
  const list = useLoad((signal) => call("GET", "/aggregates", { query: { limit: 1000 }, signal }), []);
  const aggregates = list.data?.aggregates ?? [];
  const [uuid, setUuid] = useState("");
  const chosen = uuid || aggregates[0]?.uuid;
  const act = (/** @type {string} */ name) => call("PUT", `/aggregates/${chosen}/hosts/${encodeURIComponent(name)}`);
  return h(
    HostsDialog,
    { verb: "Add", to: " to an aggregate", names, act, isReady: Boolean(chosen), onClose, onDone },
    h(Problem, { error: list.error }),
    aggregates.length
      ? h(SelectField, {
          label: "Aggregate",
          value: chosen,
          options: aggregates.map((/** @type {any} */ each) => ({ value: each.uuid, name: each.name || each.uuid })),
          onChoose: setUuid,
        })
      : h("p", {}, list.isLoading ? "Loading …" : "No aggregate exists."),
  );
}

/** A dialog that acts on each host. @param {{verb: string, to?: string, names: string[], act: (name: string) => Promise<unknown>, isReady?: boolean, onClose: () => void, onDone: () => void, children?: any}} props */
function HostsDialog({ verb, to = "", names, act, isReady = true, onClose, onDone, children }) {
  const [done, setDone] = useState(-1);
  return h(
    ActDialog,
    {
      title: `${verb} ${counted(names.length, "host")}${to}`,
      verb,
      isReady,
      act: () => forEach(names, act, setDone).finally(() => setDone(-1)),
      onClose,
      onDone,
    },
    h(
      "p",
      { class: "second" },
      names.slice(0, 8).join(", ") + (names.length > 8 ? ` and ${names.length - 8} more` : ""),
    ),
    children,
    done >= 0 ? h("progress", { value: done, max: names.length, "aria-label": "Progress" }) : null,
  );
}
