/** Groups of hosts: zones and racks, aggregates, or hosts of one size. */
import { NONE, DOWN } from "./fleet_file.js";
import { className, compareNames, shortAmount } from "../page/format.js";
import { orderByName } from "./name_order.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */
/** @typedef {import("./layout.js").Group} Group */

export const GROUPINGS = [
  { value: "zone", name: "zone, rack" },
  { value: "aggregate", name: "aggregate" },
  { value: "kind", name: "size" },
  { value: "all", name: "nothing" },
];

/**
 * Group the hosts of a fleet; each host is in one group, in the order of its name.
 * @param {Fleet} fleet @param {string} by @param {(host: number) => string} nameOf
 * @returns {Group[]}
 */
export function groupHosts(fleet, by, nameOf) {
  const { names, numbers } = labelsOf(fleet, by);
  const racks = by === "zone" ? fleet.racks : [""];
  const lists = /** @type {Map<number, number[]>} */ (new Map());
  for (const host of orderByName(fleet, nameOf)) {
    const rack = by === "zone" ? /** @type {number} */ (fleet.rack[host]) : 0;
    const key = numbers(host) * racks.length + rack;
    const list = lists.get(key);
    if (list) list.push(host);
    else lists.set(key, [host]);
  }
  const groups = names.map((name) => ({ name, blocks: /** @type {import("./layout.js").Block[]} */ ([]) }));
  for (const [key, hosts] of lists)
    groups[Math.floor(key / racks.length)]?.blocks.push({ name: racks[key % racks.length] ?? "", hosts });
  for (const { blocks } of groups) blocks.sort(byName);
  return groups.filter(({ blocks }) => blocks.length).sort(byName);
}

/** @param {{name: string}} left @param {{name: string}} right */
const byName = (left, right) => compareNames(left.name, right.name);

/**
 * The names of the groups, and the number of the group of a host.
 * @param {Fleet} fleet @param {string} by
 * @returns {{names: string[], numbers: (host: number) => number}}
 */
function labelsOf(fleet, by) {
  if (by === "kind") return numbered(fleet.kinds.map(kindName), fleet.kind);
  if (by === "zone") return numbered(zoneLabels(fleet), fleet.place);
  if (by === "aggregate") return numbered(aggregateLabels(fleet), fleet.place);
  return { names: ["all hosts"], numbers: () => 0 };
}

/** Labels may be the same. @param {string[]} labels @param {Uint16Array | Uint32Array} column index of a label, by host */
function numbered(labels, column) {
  const names = [...new Set(labels)];
  const numberOf = new Map(names.map((name, at) => [name, at]));
  const number = labels.map((label) => numberOf.get(label) ?? 0);
  return { names, numbers: (/** @type {number} */ host) => number[column[host] ?? 0] ?? 0 };
}

/** @param {Fleet} fleet */
const zoneLabels = (fleet) => fleet.places.map((place) => place.zone || "no zone");

/** @param {Fleet} fleet */
function aggregateLabels(fleet) {
  return fleet.places.map(
    (place) =>
      place.aggregates.map((at) => fleet.aggregates[at]?.name || fleet.aggregates[at]?.uuid).join(", ") ||
      "no aggregate",
  );
}

/** @param {Record<string, number>} kind capacity by class */
export function kindName(kind) {
  const parts = Object.entries(kind).map(([name, value]) =>
    name === "VCPU" ? `${value} VCPU` : `${shortAmount(name, value)} ${className(name)}`,
  );
  return parts.join(", ") || "no inventory";
}

/**
 * Summarise groups for a table: the same facts as the map, in numbers.
 * @param {Fleet} fleet @param {Group[]} groups @param {number} column of the shares
 * @param {import("../room/room.js").Room | null} [room] how many more instances of a flavor fit; null: unknown
 */
export function summarise(fleet, groups, column, room = null) {
  const shares = fleet.shares[column];
  return groups.map((group) => {
    const lists = group.blocks.map((block) => block.hosts);
    const hosts = new Int32Array(lists.reduce((total, list) => total + list.length, 0));
    let end = 0;
    for (const list of lists) {
      hosts.set(list, end);
      end += list.length;
    }
    // Plain loops: the first map waits for these sums.
    const known = new Uint16Array(hosts.length);
    let [count, sum, full, down] = [0, 0, 0, 0];
    for (let each = 0; each < hosts.length; each += 1) {
      const host = /** @type {number} */ (hosts[each]);
      if ((fleet.states[host] ?? 0) & DOWN) down += 1;
      const share = shares?.[host] ?? NONE;
      if (share === NONE) continue;
      known[count] = share;
      count += 1;
      sum += share;
      if (share >= 1000) full += 1;
    }
    const values = known.subarray(0, count).sort();
    const at = (/** @type {number} */ part) => (values[Math.min(count - 1, Math.floor(part * count))] ?? 0) / 1000;
    return {
      name: group.name,
      hosts: hosts.length,
      fits: room && hosts.reduce((total, host) => total + (room.counts[host] ?? 0), 0),
      mean: count ? sum / count / 1000 : null,
      low: at(0.1),
      high: at(0.9),
      full,
      down,
    };
  });
}
