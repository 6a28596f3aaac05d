/** The buttons of an instance, and their dialogs. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { ActDialog } from "../parts/act.js";
import { Problem } from "../parts/elements.js";
import { CheckField, SelectField, TextField } from "../parts/fields.js";
import { possibleActs } from "./acts.js";

/** @typedef {import("./acts.js").Act} Act */

/** @param {{instance: any, isDown: boolean, onDone: (label: string, answer: any) => void}} props */
export function InstanceActs({ instance, isDown, onDone }) {
  const [chosen, setChosen] = useState(/** @type {Act | null} */ (null));
  const acts = possibleActs(instance, may, isDown);
  return h(
    "div",
    { class: "acts", role: "group", "aria-label": "Acts" },
    acts.map((act) =>
      h(
        "button",
        {
          key: act.kind,
          class: `button${act.isDanger ? " danger" : ""}`,
          type: "button",
          onClick: () => setChosen(act),
        },
        `${instance.status === null ? "Release" : act.label} …`,
      ),
    ),
    chosen
      ? h(InstanceDialog, {
          key: chosen.kind,
          act: chosen,
          instance,
          onClose: () => setChosen(null),
          onDone: (answer) => onDone(chosen.label, answer),
        })
      : null,
  );
}

/** @param {{act: Act, instance: any, onClose: () => void, onDone: (answer: any) => void}} props */
function InstanceDialog({ act, instance, onClose, onDone }) {
  const [value, setValue] = useState("");
  const [isOn, setOn] = useState(false);
  const label = instance.status === null ? "Release" : act.label;
  const name = instance.name || instance.uuid;
  const send = (/** @type {Record<string, string>} */ headers) => {
    if (act.field === "delete")
      return call("DELETE", `/instances/${instance.uuid}`, { query: isOn ? { force: true } : {}, headers });
    const body = bodyOf(act, value, isOn);
    return call("POST", `/instances/${instance.uuid}/${act.kind}`, body ? { body, headers } : { headers });
  };
  return h(
    ActDialog,
    {
      title: `${label} ${name}`,
      verb: label,
      isDanger: Boolean(act.isDanger),
      isReady: act.field !== "flavor" || value !== "",
      act: send,
      onClose,
      onDone,
    },
    h("p", {}, instance.status === null ? "Its resources on the host are released." : act.about),
    act.field === "host" ? h(TargetField, { instance, value, onText: setValue }) : null,
    act.field === "flavor" ? h(NameField, { noun: "flavor", label: "New flavor", value, onChoose: setValue }) : null,
    act.field === "image"
      ? h(NameField, { noun: "image", label: "Image", none: "Its present image", value, onChoose: setValue })
      : null,
    act.kind === "migrate"
      ? h(CheckField, { label: "Wait on the target for a confirmation", isOn, onChange: setOn })
      : null,
    act.field === "delete" && instance.status !== null && may("instances:delete:force")
      ? h(CheckField, { label: "Release its resources before the host has removed it", isOn, onChange: setOn })
      : null,
  );
}

/** The body of a request; null: it has none. @param {Act} act @param {string} value @param {boolean} isOn */
function bodyOf(act, value, isOn) {
  const host = value.trim() || null;
  if (act.kind === "migrate") return { host, verify: isOn };
  if (act.field === "host") return { host };
  if (act.field === "flavor") return { flavor: value };
  if (act.field === "image") return { image: value || null };
  return act.kind === "revert" ? {} : null;
}

/** @param {{instance: any, value: string, onText: (value: string) => void}} props */
function TargetField({ instance, value, onText }) {
  const loaded = useLoad(
    (signal) =>
      may("hosts:list")
        ? call("GET", "/hosts", { query: { fields: "host", up: true, disabled: false, limit: 500 }, signal })
        : Promise.resolve({ hosts: [] }),
    [],
  );
  const names = [...new Set((loaded.data?.hosts ?? []).map((/** @type {any} */ each) => each.host))];
  return [
    h(TextField, {
      key: "field",
      label: "Target host; empty: the best one",
      value,
      onText,
      list: "targets",
      autocomplete: "off",
    }),
    h(
      "datalist",
      { key: "list", id: "targets" },
      names.filter((name) => name !== instance.host).map((name) => h("option", { key: String(name), value: name })),
    ),
  ];
}

/** @param {{noun: "flavor" | "image", label: string, none?: string, value: string, onChoose: (value: string) => void}} props */
function NameField({ noun, label, none = "Choose …", value, onChoose }) {
  const loaded = useLoad((signal) => call("GET", `/${noun}s`, { signal }), []);
  const names = (loaded.data?.[`${noun}s`] ?? []).map((/** @type {any} */ each) => each.name);
  return [
    h(Problem, { key: "problem", error: loaded.error }),
    h(SelectField, {
      key: "field",
      label,
      value,
      options: [{ value: "", name: none }, ...names.map((/** @type {string} */ name) => ({ value: name, name }))],
      onChoose,
    }),
  ];
}
