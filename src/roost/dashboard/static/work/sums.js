/** Plans of drains and of moves, and their progress, summed up. */
import { mainReason } from "../decision/sentences.js";
import { compareNames, counted } from "../page/format.js";

/** @typedef {{uuid: string, name: string, status: string, source: string, how: string, host: string, problem: string, number?: number, after?: number[], reason?: string}} Move */

/** How far a drain is, in parts of its instances. @param {any} drain */
export function progressOf(drain) {
  const all = drain.instances;
  const moved = Math.max(0, all - drain.left - drain.moving - drain.stayed);
  return { all, moved, moving: drain.moving, stayed: drain.stayed, left: drain.left };
}

/** How far an applied plan is, in moves. @param {any} plan */
export function planProgressOf(plan) {
  const inState = (/** @type {string} */ state) =>
    plan.moves.filter((/** @type {any} */ each) => each.state === state).length;
  const [moved, moving, failed, skipped] = ["done", "moving", "failed", "skipped"].map(inState);
  return {
    all: plan.moves.length,
    moved: moved ?? 0,
    moving: moving ?? 0,
    failed: failed ?? 0,
    skipped: skipped ?? 0,
    stayed: (failed ?? 0) + (skipped ?? 0),
    left: inState("waiting"),
  };
}

/** The windows in a text; a window has commas between weekdays, so blanks or semicolons separate windows. @param {string} text */
export const windowsIn = (text) => text.split(/[;\s]+/).filter(Boolean);

/**
 * A plan to empty hosts from the server, with moves of other instances, in the form of a plan of drains.
 * @param {any} answer of `/plans/drain`
 */
export function drainPlanOf(answer) {
  /** @type {Move[]} */
  const moves = answer.moves.map((/** @type {any} */ each) => ({
    uuid: each.instance_uuid,
    name: each.instance,
    status: "",
    source: each.source,
    how: each.how,
    host: each.target,
    problem: "",
    number: each.number,
    after: each.after,
    reason: each.reason,
  }));
  const stays = answer.staying.map((/** @type {any} */ each) => ({
    uuid: each.instance_uuid,
    name: each.instance,
    status: "",
    source: each.host,
    how: "",
    host: "",
    problem: each.problem,
  }));
  return {
    moves: [...moves, ...stays],
    steps: answer.moves.map((/** @type {any} */ each) => ({
      number: each.number,
      instance_uuid: each.instance_uuid,
      source: each.source,
      target: each.target,
      after: each.after,
    })),
    text: roomText(answer),
    note: answer.is_over_budget
      ? "The search ended at the time budget of the server: a better plan may exist."
      : answer.is_cut
        ? "The search ended at its limit: a better plan may exist."
        : "",
  };
}

/** @param {any} answer */
function roomText(answer) {
  const moves = answer.moves.length;
  if (!moves && !answer.problem) return `${counted(answer.hosts, "host")} without instances: no move is needed.`;
  const extra = answer.extra ? `, ${answer.extra} of them to make room` : "";
  const empty = `${answer.emptied.length} of ${counted(answer.hosts, "host")} would be empty`;
  return `${empty} after ${counted(moves, "move")}${extra}.`;
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
