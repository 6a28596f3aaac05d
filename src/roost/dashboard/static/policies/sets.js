/** Sets of settings to compare: changes of the settings in force, each with a name. */

/** @typedef {import("./toml.js").Sections} Sections */
/** @typedef {{name: string, sections: Sections}} SettingsSet */
/** @typedef {{section: string, key: string, value: any, default: any, source: string, kind: string, description: string}} Setting */
/** @typedef {{kind: string, name: string, nova_name: string, multiplier: number | null, settings: string[]}} Rule */

export const SETS_MAX = 4;
export const COLOURS = ["--weigher-1", "--weigher-3", "--weigher-4", "--weigher-5"];

/** What the view begins with: the settings in force, and the opposite of spreading. @returns {SettingsSet[]} */
export function firstSets() {
  const pack = { cpu_weight_multiplier: -1, ram_weight_multiplier: -1, disk_weight_multiplier: -1 };
  return [
    { name: "In force", sections: {} },
    { name: "Pack", sections: { filter_scheduler: pack } },
  ];
}

/** Another set, with a name of its own. @param {SettingsSet[]} sets @returns {SettingsSet} */
export function nextSet(sets) {
  const names = new Set(sets.map((each) => each.name));
  let number = sets.length + 1;
  while (names.has(`Set ${number}`)) number += 1;
  return { name: `Set ${number}`, sections: { ...(sets.at(-1)?.sections ?? {}) } };
}

/** Set a value, or leave it as in force. @param {Sections} sections @param {string} section @param {string} key @param {any} value undefined: as in force @returns {Sections} */
export function withValue(sections, section, key, value) {
  const table = { ...sections[section], [key]: value };
  if (value === undefined) delete table[key];
  const changed = { ...sections, [section]: table };
  if (!Object.keys(table).length) delete changed[section];
  return changed;
}

/** The sets as text of a link. @param {SettingsSet[]} sets */
export const toLink = (sets) => JSON.stringify(sets.map((each) => [each.name, each.sections]));

/** The sets of a link; null: there are none. @param {string | null} text @returns {SettingsSet[] | null} */
export function fromLink(text) {
  try {
    const found = JSON.parse(text ?? "null");
    if (!Array.isArray(found) || found.length < 2 || found.length > SETS_MAX) return null;
    return found.map(([name, sections]) => ({ name: String(name), sections: Object(sections) }));
  } catch {
    return null;
  }
}

/** Why sets cannot be compared; empty: they can. @param {SettingsSet[]} sets */
export function problemOf(sets) {
  if (sets.some((each) => !each.name.trim())) return "Each set needs a name.";
  return new Set(sets.map((each) => each.name)).size < sets.length ? "Two sets have the same name." : "";
}

/**
 * The multipliers of the weighers in their order: the setting of each, and its value in force.
 * @param {Rule[]} rules @param {Setting[]} settings
 * @returns {{weigher: string, setting: Setting}[]}
 */
export function multipliersOf(rules, settings) {
  const byName = new Map(settings.map((each) => [`${each.section}.${each.key}`, each]));
  return rules
    .filter((rule) => rule.kind === "weigher")
    .flatMap((rule) => {
      const name = rule.settings.find((each) => /weight_multiplier$/.test(each));
      const setting = name ? byName.get(name) : undefined;
      return setting ? [{ weigher: rule.name, setting }] : [];
    });
}

// Sections without effect on decisions: a file for a comparison leaves them out.
const OTHER_SECTIONS = new Set("store conductor placement notifications monitoring nova agent log".split(" "));

/** The whole of a set for a file: what is set in force and affects decisions, and the changes. @param {Sections} sections @param {Setting[]} settings @returns {Sections} */
export function fullOf(sections, settings) {
  /** @type {Sections} */
  const full = {};
  for (const { section, key, value, default: usual } of settings) {
    const isSet = !OTHER_SECTIONS.has(section) && JSON.stringify(value) !== JSON.stringify(usual);
    if (isSet) (full[section] ??= {})[key] = value;
  }
  for (const [section, table] of Object.entries(sections)) full[section] = { ...full[section], ...table };
  return full;
}

/** The name of the file of a set. @param {string} name */
export const fileOf = (name) => `${name.replace(/[^\w-]+/g, "-").toLowerCase() || "settings"}.toml`;

/** How many settings a set changes. @param {Sections} sections */
export const sizeOf = (sections) => Object.values(sections).reduce((sum, table) => sum + Object.keys(table).length, 0);
