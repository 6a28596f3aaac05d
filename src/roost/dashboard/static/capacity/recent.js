/** The newest amounts of the history: a point of a long period can be hours old. */
import { call } from "../page/api.js";

const RECENT_S = 900;

/**
 * The history of the last minutes, one point a minute.
 * @param {string} zone empty: all zones
 * @param {AbortSignal} [signal]
 * @returns {Promise<import("./outlook.js").History>}
 */
export function loadRecent(zone, signal) {
  const query = { zone, since: Date.now() / 1000 - RECENT_S, points: RECENT_S / 60 };
  return call("GET", "/history", signal ? { query, signal } : { query });
}
