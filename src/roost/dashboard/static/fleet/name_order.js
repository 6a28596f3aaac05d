/** The order of hosts by name. */
import { sortKey } from "../page/format.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */

const DIGITS_MAX = 70; // of a number that is looked at here

/** @type {WeakMap<Fleet, Int32Array>} */
const orders = new WeakMap();

/** The hosts in the order of their names; kept, since it takes long for many hosts. @param {Fleet} fleet @param {(host: number) => string} nameOf */
export function orderByName(fleet, nameOf) {
  let order = orders.get(fleet);
  if (!order) {
    order = Int32Array.from({ length: fleet.hosts }, (_, host) => host);
    if (!areInOrder(fleet.hosts, nameOf)) sort(order, nameOf);
    orders.set(fleet, order);
  }
  return order;
}

/** @param {Int32Array} order @param {(host: number) => string} nameOf */
function sort(order, nameOf) {
  const keys = Array.from(order, (host) => sortKey(nameOf(host)));
  order.sort((left, right) => {
    const [one, other] = [/** @type {string} */ (keys[left]), /** @type {string} */ (keys[right])];
    return one < other ? -1 : one > other ? 1 : left - right;
  });
}

/** Most fleets are in order already, and this is seen at less cost than a sort. @param {number} hosts @param {(host: number) => string} nameOf */
function areInOrder(hosts, nameOf) {
  for (let host = 1; host < hosts; host += 1) if (!isBefore(nameOf(host - 1), nameOf(host))) return false;
  return true;
}

/**
 * Whether a name is surely not after another one, as `sortKey` orders them. False can also mean: look closer.
 * @param {string} left @param {string} right
 */
export function isBefore(left, right) {
  let at = 0;
  while (at < left.length && left.charCodeAt(at) === right.charCodeAt(at)) at += 1;
  if (at === left.length && at === right.length) return true;
  if (!isDigit(left.charCodeAt(at)) && !isDigit(right.charCodeAt(at)))
    return at === left.length || (at < right.length && isLess(left.charCodeAt(at), right.charCodeAt(at)));
  let start = at;
  while (start > 0 && isDigit(left.charCodeAt(start - 1))) start -= 1;
  const [one, other] = [endOfNumber(left, start) - start, endOfNumber(right, start) - start];
  if (one === other) return /** @type {string} */ (left[at]) < /** @type {string} */ (right[at]);
  return 0 < one && one < other && other <= DIGITS_MAX && left[start] !== "0" && right[start] !== "0";
}

/** @param {number} code of a character */
const isDigit = (code) => code >= 48 && code <= 57;

/** Whether two codes are those of small letters or marks of ASCII, and the first is less. @param {number} one @param {number} other */
const isLess = (one, other) => one < other && other < 128 && !isCapital(one) && !isCapital(other);

/** @param {number} code of a character */
const isCapital = (code) => code >= 65 && code <= 90;

/** @param {string} text @param {number} start */
function endOfNumber(text, start) {
  let end = start;
  while (end < text.length && isDigit(text.charCodeAt(end))) end += 1;
  return end;
}
