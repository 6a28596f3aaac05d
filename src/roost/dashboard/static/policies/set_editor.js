/** The form of one set of settings: multipliers, filters, or the text of a settings file. */
import { useRef, useState } from "preact/hooks";
import { h } from "preact";
import { counted } from "../page/format.js";
import { Choice, Problem } from "../parts/elements.js";
import { CheckField, Input } from "../parts/fields.js";
import { COLOURS, fileOf, fullOf, multipliersOf, sizeOf, withValue } from "./sets.js";
import { fromToml, toToml } from "./toml.js";

/** @typedef {import("./sets.js").SettingsSet} SettingsSet */

const ZERO_AT_FIRST = 6; // multipliers that are always shown

/**
 * @param {{
 *   set: SettingsSet, at: number, rules: import("./sets.js").Rule[], settings: import("./sets.js").Setting[],
 *   onChange: (set: SettingsSet) => void, onRemove: (() => void) | null,
 * }} props
 */
export function SetEditor({ set, at, rules, settings, onChange, onRemove }) {
  const [chosen, setMode] = useState("form");
  const hasForm = settings.length > 0; // the roles may not allow the settings
  const mode = hasForm ? chosen : "text";
  const size = sizeOf(set.sections);
  return h(
    "section",
    { class: "card set", "aria-label": `Set ${at + 1}: ${set.name}` },
    h(
      "div",
      { class: "set-head" },
      h("span", { class: `swatch set-${at + 1}`, "aria-hidden": "true" }),
      h(Input, {
        "aria-label": `Name of set ${at + 1}`,
        value: set.name,
        maxLength: 60,
        onText: (name) => onChange({ ...set, name }),
      }),
      onRemove
        ? h(
            "button",
            { class: "button small", type: "button", "aria-label": `Remove ${set.name}`, onClick: onRemove },
            "Remove",
          )
        : null,
    ),
    h(
      "p",
      { class: "second" },
      size ? `${counted(size, "setting")} other than in force` : "The settings in force, without a change",
    ),
    hasForm
      ? h(Choice, {
          label: `Edit ${set.name} as`,
          value: mode,
          options: [
            { value: "form", name: "Form" },
            { value: "text", name: "Settings file" },
          ],
          onChoose: setMode,
        })
      : null,
    mode === "form"
      ? [
          h(Multipliers, { key: "m", set, rules, settings, onChange }),
          h(Filters, { key: "f", set, settings, onChange }),
          h(Others, { key: "o", set, rules, settings }),
        ]
      : h(Text, { set, onChange }),
    h(
      "div",
      {},
      h(
        "button",
        { class: "button small", type: "button", onClick: () => download(set, settings) },
        "Download as TOML",
      ),
    ),
  );
}

/** @param {{set: SettingsSet, rules: any[], settings: any[], onChange: (set: SettingsSet) => void}} props */
function Multipliers({ set, rules, settings, onChange }) {
  const [isLong, setLong] = useState(false);
  const all = multipliersOf(rules, settings);
  const valueOf = (/** @type {any} */ setting) => set.sections[setting.section]?.[setting.key];
  const usual = all.filter(
    ({ weigher, setting }) =>
      valueOf(setting) !== undefined ||
      ["cpu", "ram", "disk", "free_share", "io_ops", "num_instances"].includes(weigher),
  );
  const shown = isLong || all.length <= ZERO_AT_FIRST ? all : usual;
  return h(
    "fieldset",
    { class: "set-rows" },
    h("legend", {}, "Multipliers of the weighers"),
    shown.map(({ weigher, setting }) => {
      const value = valueOf(setting);
      return h(
        "label",
        { key: weigher, class: value === undefined ? "set-row" : "set-row changed", title: setting.description },
        h("span", {}, weigher),
        h(Input, {
          type: "number",
          step: "any",
          value: value ?? setting.value,
          "aria-label": `${weigher} in ${set.name}`,
          onText: (text) => {
            const typed = Number(text);
            const next = text === "" || typed === setting.value ? undefined : typed;
            onChange({ ...set, sections: withValue(set.sections, setting.section, setting.key, next) });
          },
        }),
        h("span", { class: "second" }, value === undefined ? "in force" : `in force ${setting.value}`),
      );
    }),
    shown.length < all.length || isLong
      ? h(
          "button",
          { class: "button plain", type: "button", onClick: () => setLong(!isLong) },
          isLong ? "Fewer weighers" : `All ${all.length} weighers`,
        )
      : null,
  );
}

/** @param {{set: SettingsSet, settings: any[], onChange: (set: SettingsSet) => void}} props */
function Filters({ set, settings, onChange }) {
  const [name, setName] = useState("");
  const seen = useRef(/** @type {Set<string>} */ (new Set())); // also filters that are no longer enabled
  const setting = settings.find((each) => each.section === "filter_scheduler" && each.key === "enabled_filters");
  if (!setting) return null;
  /** @type {string[]} */
  const inForce = setting.value;
  /** @type {string[]} */
  const enabled = set.sections.filter_scheduler?.enabled_filters ?? inForce;
  const use = (/** @type {string[]} */ filters) =>
    onChange({
      ...set,
      sections: withValue(
        set.sections,
        "filter_scheduler",
        "enabled_filters",
        filters.join() === inForce.join() ? undefined : filters,
      ),
    });
  for (const each of [...inForce, ...enabled]) seen.current.add(each);
  const all = [...seen.current];
  const toggle = (/** @type {string} */ filter) => {
    if (enabled.includes(filter)) return use(enabled.filter((other) => other !== filter));
    const isInOrder = all.filter((other) => enabled.includes(other)).join() === enabled.join();
    const wanted = [...enabled, filter];
    return use(isInOrder ? all.filter((other) => wanted.includes(other)) : wanted);
  };
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (name.trim() && !enabled.includes(name.trim())) use([...enabled, name.trim()]);
    setName("");
  };
  return h(
    "details",
    { class: "set-rows" },
    h("summary", {}, `Filters: ${enabled.length} enabled`),
    all.map((each) =>
      h(CheckField, {
        key: each,
        class: "set-check",
        label: each,
        isOn: enabled.includes(each),
        onChange: () => toggle(each),
      }),
    ),
    h(
      "form",
      { class: "bar-of-tools", onSubmit: add },
      h(Input, {
        "aria-label": `Another filter for ${set.name}`,
        placeholder: "Another filter, such as IoOpsFilter",
        value: name,
        size: 30,
        onText: setName,
      }),
      h("button", { class: "button small", type: "submit" }, "Add"),
    ),
  );
}

/** Changes that the form has no row for. @param {{set: SettingsSet, rules: any[], settings: any[]}} props */
function Others({ set, rules, settings }) {
  const known = new Set(multipliersOf(rules, settings).map(({ setting }) => `${setting.section}.${setting.key}`));
  known.add("filter_scheduler.enabled_filters");
  const others = Object.entries(set.sections).flatMap(([section, table]) =>
    Object.entries(table)
      .filter(([key]) => !known.has(`${section}.${key}`))
      .map(([key, value]) => `${section}.${key} = ${JSON.stringify(value)}`),
  );
  return others.length ? h("p", { class: "second" }, "Also: ", h("code", {}, others.join(", "))) : null;
}

/** @param {{set: SettingsSet, onChange: (set: SettingsSet) => void}} props */
function Text({ set, onChange }) {
  const [text, setText] = useState(() => toToml(set.sections));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const change = (/** @type {string} */ typed) => {
    setText(typed);
    try {
      onChange({ ...set, sections: fromToml(typed) });
      setError(null);
    } catch (problem) {
      setError(/** @type {Error} */ (problem));
    }
  };
  return h(
    "div",
    {},
    h(Input, {
      isLong: true,
      "aria-label": `Settings of ${set.name}`,
      spellcheck: false,
      value: text,
      placeholder: "[filter_scheduler]\ncpu_weight_multiplier = -1.0",
      onText: change,
    }),
    h(Problem, { error }),
  );
}

/** Offer a set as a settings file. @param {SettingsSet} set @param {import("./sets.js").Setting[]} settings */
function download(set, settings) {
  const text = toToml(fullOf(set.sections, settings));
  const head = `# ${set.name.replace(/[\r\n]/g, " ")}: the settings that affect decisions, without those at their defaults.\n`;
  const url = URL.createObjectURL(new Blob([head + text], { type: "application/toml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileOf(set.name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** The swatch of a set in tables and legends. @param {{at: number, name: string}} props */
export function SetName({ at, name }) {
  return h("span", {}, h("span", { class: `swatch set-${at + 1}`, "aria-hidden": "true" }), name);
}

/** The colour of a set as a variable of the styles. @param {number} at */
export const colourOf = (at) => COLOURS[at] ?? "--ink";
