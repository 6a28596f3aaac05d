/** Groups of hosts: zones and racks, aggregates, or hosts of one size. */
import { NONE, DOWN } from "./fleet_file.js";
import { className, shortAmount } from "../page/format.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */
/** @typedef {import("./layout.js").Group} Group */

export const GROUPINGS = [
  { value: "zone", name: "zone, rack" },
  { value: "aggregate", name: "aggregate" },
  { value: "kind", name: "size" },
  { value: "all", name: "nothing" },
];

const natural = new Intl.Collator("en", { numeric: true });

/**
 * Group the hosts of a fleet; each host is in one group, in the order of its name.
 * @param {Fleet} fleet @param {string} by @param {(host: number) => string} nameOf
 * @returns {Group[]}
 */
export function groupHosts(fleet, by, nameOf) {
  const order = orderOf(fleet, nameOf);
  /** @type {Map<string, Map<string, number[]>>} */
  const groups = new Map();
  const labels = by === "zone" ? zoneLabels(fleet) : by === "aggregate" ? aggregateLabels(fleet) : null;
  for (const host of order) {
    const place = /** @type {number} */ (fleet.place[host]);
    let name = "all hosts";
    if (labels) name = /** @type {string} */ (labels[place]);
    else if (by === "kind") name = kindName(fleet.kinds[/** @type {number} */ (fleet.kind[host])] ?? {});
    const rack =
      by === "zone" ? /** @type {string} */ (fleet.racks[/** @type {number} */ (fleet.rack[host])] ?? "") : "";
    let blocks = groups.get(name);
    if (!blocks) groups.set(name, (blocks = new Map()));
    const block = blocks.get(rack);
    if (block) block.push(host);
    else blocks.set(rack, [host]);
  }
  return [...groups].sort(byName).map(([name, blocks]) => ({
    name,
    blocks: [...blocks].sort(byName).map(([rack, hosts]) => ({ name: rack, hosts })),
  }));
}

/** @param {[string, unknown]} left @param {[string, unknown]} right */
const byName = ([left], [right]) => natural.compare(left, right);

/** @type {WeakMap<Fleet, Int32Array>} */
const orders = new WeakMap();

/** The hosts in the order of their names; kept, since it takes long for many hosts. @param {Fleet} fleet @param {(host: number) => string} nameOf */
function orderOf(fleet, nameOf) {
  let order = orders.get(fleet);
  if (!order) {
    order = sortedByName(fleet.hosts, nameOf);
    orders.set(fleet, order);
  }
  return order;
}

/** @param {number} hosts @param {(host: number) => string} nameOf */
function sortedByName(hosts, nameOf) {
  const keys = Array.from({ length: hosts }, (_, host) => sortKey(nameOf(host)));
  const order = Int32Array.from({ length: hosts }, (_, host) => host);
  return order.sort((left, right) => {
    const [one, other] = [/** @type {string} */ (keys[left]), /** @type {string} */ (keys[right])];
    return one < other ? -1 : one > other ? 1 : left - right;
  });
}

/** A text that sorts as people count: each number has its length before it. @param {string} name */
export function sortKey(name) {
  return name.toLowerCase().replace(/\d+/g, (digits) => {
    const plain = digits.replace(/^0+(?=\d)/, "");
    return String.fromCharCode(48 + Math.min(plain.length, 70)) + plain;
  });
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
    const hosts = group.blocks.flatMap((block) => [...block.hosts]);
    const values = hosts
      .map((host) => shares?.[host] ?? NONE)
      .filter((value) => value !== NONE)
      .sort((left, right) => left - right);
    const at = (/** @type {number} */ part) =>
      (values[Math.min(values.length - 1, Math.floor(part * values.length))] ?? 0) / 1000;
    const sum = values.reduce((total, value) => total + value, 0);
    return {
      name: group.name,
      hosts: hosts.length,
      fits: room && hosts.reduce((total, host) => total + (room.counts[host] ?? 0), 0),
      mean: values.length ? sum / values.length / 1000 : null,
      low: at(0.1),
      high: at(0.9),
      full: values.filter((value) => value >= 1000).length,
      down: hosts.filter((host) => (fleet.states[host] ?? 0) & DOWN).length,
    };
  });
}
