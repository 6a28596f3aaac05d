/** Plans of drains and their progress, summed up. */
import { mainReason } from "../decision/sentences.js";
import { compareNames } from "../page/format.js";

/** @typedef {{uuid: string, name: string, status: string, source: string, how: string, host: string, problem: string}} Move */

/** How far a drain is, in parts of its instances. @param {any} drain */
export function progressOf(drain) {
  const all = drain.instances;
  const moved = Math.max(0, all - drain.left - drain.moving - drain.stayed);
  return { all, moved, moving: drain.moving, stayed: drain.stayed, left: drain.left };
}

/**
 * Which instances go, which stay, and how many arrive on which host.
 *
 * The counts of hosts differ from move to move, so reasons are equal if most hosts lack the same.
 * @param {Move[]} moves
 */
export function sumUp(moves) {
  const staying = moves.filter((move) => !move.how);
  const going = moves.filter((move) => move.how);
  /** @type {Map<string, number>} */
  const arrivals = new Map();
  for (const move of going) if (move.host) arrivals.set(move.host, (arrivals.get(move.host) ?? 0) + 1);
  /** @type {Map<string, Move[]>} */
  const reasons = new Map();
  for (const move of staying) {
    const main = mainReason(move.problem);
    const reason = main ? `Hosts ${main}` : move.problem || "The reason is unknown.";
    const same = reasons.get(reason);
    if (same) same.push(move);
    else reasons.set(reason, [move]);
  }
  return {
    going,
    staying,
    live: going.filter((move) => move.how === "live_migrate").length,
    arrivals: [...arrivals].sort((left, right) => right[1] - left[1] || compareNames(left[0], right[0])),
    reasons: [...reasons].sort((left, right) => right[1].length - left[1].length),
  };
}
