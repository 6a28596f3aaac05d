/** What the history says of each resource class: its use now, its trend, and when it runs out. */
import { daysLeft, lineAt, trendOf } from "./trend.js";

/**
 * @typedef {object} ClassHistory
 * @property {string} resource_class
 * @property {(number | null)[]} capacity
 * @property {(number | null)[]} used
 * @property {(number | null)[]} stranded
 * @property {(number | null)[]} unusable
 */
/** @typedef {{times: number[], step_s: number, zones: string[], classes: ClassHistory[]}} History */
/**
 * @typedef {object} Outlook of one class
 * @property {string} name
 * @property {number} capacity
 * @property {number} used
 * @property {number} free
 * @property {number} stranded free without use: the host lacks another class, is down or is disabled
 * @property {import("./trend.js").Trend | null} trend
 * @property {import("./trend.js").DaysLeft | null} left
 */

/** The last known number. @param {(number | null)[]} values */
const lastOf = (values) => values.findLast((value) => value !== null) ?? 0;

/**
 * The outlook of each class, the one that runs out first at the start.
 * @param {History} history for the trends
 * @param {History} [recent] for the present amounts, of the same zones
 * @returns {Outlook[]}
 */
export function outlooksOf(history, recent = history) {
  return history.classes
    .map((each) => {
      const newest = recent.classes.find((other) => other.resource_class === each.resource_class) ?? each;
      const capacity = lastOf(newest.capacity);
      const used = lastOf(newest.used);
      const trend = trendOf(history.times, each.used);
      return {
        name: each.resource_class,
        capacity,
        used,
        free: Math.max(0, capacity - used),
        stranded: lastOf(newest.stranded) + lastOf(newest.unusable),
        trend,
        left: trend && capacity ? daysLeft(capacity - used, trend) : null,
      };
    })
    .sort(
      (left, right) =>
        (left.left?.days ?? Infinity) - (right.left?.days ?? Infinity) ||
        right.used / (right.capacity || 1) - left.used / (left.capacity || 1),
    );
}

/** The used share of a class over time. @param {ClassHistory} history @returns {(number | null)[]} */
export const sharesOf = (history) =>
  history.used.map((used, at) => {
    const capacity = history.capacity[at];
    return used === null || !capacity ? null : used / capacity;
  });

/**
 * The used share of a class, its trend and the bounds of the trend, continued into the future until the class is full.
 * @param {History} history @param {Outlook} outlook
 */
export function projectionOf(history, outlook) {
  const { trend, capacity } = outlook;
  const found = history.classes.find((each) => each.resource_class === outlook.name);
  const shares = found ? sharesOf(found) : [];
  if (!trend || !capacity) return { times: history.times, shares, middle: [], low: [], high: [] };
  const ahead = Math.ceil(history.times.length / 3);
  const last = /** @type {number} */ (history.times.at(-1));
  const times = [...history.times, ...Array.from({ length: ahead }, (_, at) => last + (at + 1) * history.step_s)];
  const line = (/** @type {number} */ perDay, /** @type {number} */ from) =>
    times.map((time) => {
      const share = lineAt(trend, perDay, time) / capacity;
      return time < from || share > 1 || share < 0 ? null : share;
    });
  const start = /** @type {number} */ (history.times[0]);
  return {
    times,
    shares: [...shares, ...Array.from({ length: ahead }, () => null)],
    middle: line(trend.perDay, start),
    low: line(trend.low, trend.at),
    high: line(trend.high, trend.at),
  };
}

/**
 * The outlook of a class with more capacity, or with less: the instances of lost hosts move to the others.
 * @param {Outlook} outlook @param {number} more capacity to add; negative: to remove
 */
export function outlookWith(outlook, more) {
  const capacity = Math.max(0, outlook.capacity + more);
  const free = capacity - outlook.used;
  return {
    capacity,
    share: capacity ? outlook.used / capacity : outlook.used ? Infinity : 0,
    missing: Math.max(0, -free),
    left: outlook.trend ? daysLeft(free, outlook.trend) : null,
  };
}
