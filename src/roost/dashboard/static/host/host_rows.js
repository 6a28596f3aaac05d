/** The rows of the list of hosts: filtered, in the chosen order, and limited. */
import { NONE } from "../fleet/fleet_file.js";
import { orderByName } from "../fleet/name_order.js";

/** @typedef {import("../fleet/fleet_file.js").Fleet} Fleet */
/** @typedef {{share: number, free: number}} Use share: used, of the capacity; free: to a thousandth of the capacity */
/** @typedef {{host: number, name: string, zone: string, rack: string, state: number, instances: number, uses: (Use | null)[]}} Row */

/** The use of a class by a host; null: the host has none. @param {Fleet} fleet @param {number} column @param {number} host */
export function useOf(fleet, column, host) {
  const thousandths = fleet.shares[column]?.[host] ?? NONE;
  if (thousandths === NONE) return null;
  const kind = fleet.kinds[/** @type {number} */ (fleet.kind[host])];
  const capacity = kind?.[/** @type {string} */ (fleet.classes[column])] ?? 0;
  const share = thousandths / 1000;
  return { share, free: Math.round(capacity * (1 - share)) };
}

/**
 * Return the first rows, and the number of all hosts that match.
 * @param {Fleet} fleet
 * @param {(host: number) => string} nameOf
 * @param {{sort: string, state: number, text: string, limit: number}} wanted
 *     sort: a class, the host with the least of it first; otherwise by name. state: bits; 0: any. text: in a name, zone or rack
 * @returns {{rows: Row[], found: number}}
 */
export function rowsOf(fleet, nameOf, { sort, state, text, limit }) {
  const column = fleet.classes.indexOf(sort);
  const needle = text.trim().toLowerCase();
  /** @type {{host: number, free: number}[]} */
  const found = [];
  for (const host of orderByName(fleet, nameOf)) {
    if (state && !((fleet.states[host] ?? 0) & state)) continue;
    if (needle && !textOf(fleet, nameOf, host).includes(needle)) continue;
    const use = column < 0 ? null : useOf(fleet, column, host);
    if (column < 0 || use) found.push({ host, free: use?.free ?? 0 });
  }
  if (column >= 0) found.sort((left, right) => left.free - right.free);
  const rows = found.slice(0, limit).map(({ host }) => ({
    host,
    name: nameOf(host),
    ...placeOf(fleet, host),
    state: fleet.states[host] ?? 0,
    instances: fleet.instances[host] ?? 0,
    uses: fleet.classes.map((_, at) => useOf(fleet, at, host)),
  }));
  return { rows, found: found.length };
}

/** What a search looks into. @param {Fleet} fleet @param {(host: number) => string} nameOf @param {number} host */
function textOf(fleet, nameOf, host) {
  const { zone, rack } = placeOf(fleet, host);
  return `${nameOf(host)}\n${zone}\n${rack}`.toLowerCase();
}

/** @param {Fleet} fleet @param {number} host */
const placeOf = (fleet, host) => ({
  zone: fleet.places[/** @type {number} */ (fleet.place[host])]?.zone ?? "",
  rack: fleet.racks[/** @type {number} */ (fleet.rack[host])] ?? "",
});
