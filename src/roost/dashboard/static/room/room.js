/** How many more instances of a flavor each host has room for, as the server counts them. */
import { count, counted } from "../page/format.js";
import { decodeColumns } from "../fleet/fleet_file.js";

/** @typedef {import("../capacity/counts.js").Wish} Wish */
/** @typedef {{vcpus: number, memory_mb: number, root_gb: number}} Amounts */
/**
 * @typedef {object} Room
 * @property {string} generation of the columns of the fleet whose order the hosts have
 * @property {number} hosts
 * @property {boolean} addsUp whether hosts do not compete, so that all counts together fit
 * @property {string[]} warnings parts of the request that the server did not count
 * @property {Uint32Array} counts by host
 * @property {Uint8Array} isAtLeast by host: 1: the count is a lower bound
 */

export const FIELDS = /** @type {{name: keyof Amounts, title: string}[]} */ ([
  { name: "vcpus", title: "VCPU" },
  { name: "memory_mb", title: "Memory, MiB" },
  { name: "root_gb", title: "Disk, GiB" },
]);
/** The smallest count of each step of the colours. */
export const STEPS = [0, 1, 2, 4, 8, 16, 32];
/** The place of each step on the scale, in thousandths. */
export const SHADES = [0, 250, 400, 550, 700, 850, 1000];

/** Decode an answer of the server. @param {ArrayBuffer} buffer @returns {Room} */
export function decodeRoom(buffer) {
  const { head, hosts, columns } = decodeColumns(buffer);
  return {
    generation: head.generation,
    hosts,
    addsUp: head.adds_up,
    warnings: head.warnings,
    counts: columns.count,
    isAtLeast: columns.is_at_least,
  };
}

/** The step of a count. @param {number} number */
export function stepOf(number) {
  return number < 32 ? 32 - Math.clz32(number) : STEPS.length - 1;
}

/** The counts of a step: `2–3`. @param {number} step */
export function stepName(step) {
  const from = /** @type {number} */ (STEPS[step]);
  const next = STEPS[step + 1];
  if (next === undefined) return `${from} or more`;
  return next - from === 1 ? String(from) : `${from}–${next - 1}`;
}

/** The hosts of each step, and the sum of all counts. @param {Room} room */
export function sumUp(room) {
  const hosts = STEPS.map(() => 0);
  let total = 0;
  let isCut = false;
  for (let host = 0; host < room.hosts; host += 1) {
    const number = /** @type {number} */ (room.counts[host]);
    total += number;
    isCut ||= room.isAtLeast[host] === 1;
    const step = stepOf(number);
    hosts[step] = /** @type {number} */ (hosts[step]) + 1;
  }
  return { hosts, total, isCut };
}

/** The sum of all counts in words. @param {Room} room @param {string} name of the flavor */
export function totalText(room, name) {
  const { total, isCut } = sumUp(room);
  // The counts of hosts that compete for shared resources are those of each host alone.
  const bound = room.addsUp ? (isCut ? "at least " : "") : "each alone, together at most ";
  return `${bound}${count(total)} more ${name} ${total === 1 ? "fits" : "fit"}`;
}

/** The count of a host in words. @param {Room} room @param {number} host */
export function fitText(room, host) {
  const number = room.counts[host] ?? 0;
  if (!number) return "no more fits";
  return `${room.isAtLeast[host] ? "at least " : ""}${count(number)} more ${number === 1 ? "fits" : "fit"}`;
}

/** The count of a group in words, for its label. @param {number} hosts @param {number} total */
export const groupText = (hosts, total) =>
  `${counted(hosts, "host")}, ${count(total)} more ${total === 1 ? "fits" : "fit"}`;

/**
 * The amounts in a text such as `vcpus=4,memory_mb=8192`; null: it is a name.
 * @param {string} text
 * @returns {Amounts | null}
 */
export function amountsOf(text) {
  const amounts = { vcpus: 0, memory_mb: 0, root_gb: 0 };
  if (!text) return null;
  for (const part of text.split(",")) {
    const [, name, value] = /^(vcpus|memory_mb|root_gb)=(\d{1,10})$/.exec(part) ?? [];
    if (!name) return null;
    amounts[/** @type {keyof Amounts} */ (name)] = Number(value);
  }
  return amounts;
}

/** The amounts as a text. @param {Amounts} amounts */
export const textOf = (amounts) => FIELDS.map(({ name }) => `${name}=${amounts[name]}`).join(",");

/**
 * The request that a text names: amounts, a stored flavor, or the shape of a stored request; undefined: no such name.
 * @param {string} text @param {Wish[]} wishes
 * @returns {Wish | undefined}
 */
export function wishOf(text, wishes) {
  const found = wishes.find((each) => each.name === text);
  const amounts = found ? null : amountsOf(text);
  return amounts ? { name: "of these", request: { flavor: { name: "", ...amounts } } } : found;
}
