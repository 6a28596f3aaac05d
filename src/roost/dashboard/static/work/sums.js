/** Plans of drains and their progress, summed up. */

/** @typedef {{uuid: string, name: string, status: string, source: string, how: string, host: string, problem: string}} Move */

/** How far a drain is, in parts of its instances. @param {any} drain */
export function progressOf(drain) {
  const all = drain.instances;
  const moved = Math.max(0, all - drain.left - drain.moving - drain.stayed);
  return { all, moved, moving: drain.moving, stayed: drain.stayed, left: drain.left };
}

/** Who goes, who stays, and how many arrive on which host. @param {Move[]} moves */
export function sumUp(moves) {
  const staying = moves.filter((move) => !move.how);
  const going = moves.filter((move) => move.how);
  /** @type {Map<string, number>} */
  const arrivals = new Map();
  for (const move of going) if (move.host) arrivals.set(move.host, (arrivals.get(move.host) ?? 0) + 1);
  /** @type {Map<string, Move[]>} */
  const reasons = new Map();
  for (const move of staying) {
    const reason = move.problem || "for an unknown reason";
    const same = reasons.get(reason);
    if (same) same.push(move);
    else reasons.set(reason, [move]);
  }
  return {
    going,
    staying,
    live: going.filter((move) => move.how === "live_migrate").length,
    arrivals: [...arrivals].sort((left, right) => right[1] - left[1] || left[0].localeCompare(right[0])),
    reasons: [...reasons].sort((left, right) => right[1].length - left[1].length),
  };
}
