/**
 * The fleet, requested before the other modules of the page have arrived: it is what the first page shows. This module
 * starts as soon as it and `credentials.js` are there.
 */
import { credentials, fact, hasCredentials } from "./credentials.js";

/** @typedef {{columns: Promise<Response>, names: Promise<Response>}} Early */

/** @param {string} path */
function request(path) {
  const response = fetch(path, { headers: credentials(), credentials: "same-origin", cache: "no-store" });
  response.catch(() => {}); // Whoever takes it sees the error.
  return response;
}

const isFleetPage = location.pathname.replace(/\/+$/, "") === (fact("prefix") || "/ui");
let early = /** @type {Early | null} */ (
  isFleetPage && hasCredentials() ? { columns: request("/v1/fleet/columns"), names: request("/v1/fleet/names") } : null
);

/** Return the early responses, once. @returns {Early | null} */
export function takeEarly() {
  const taken = early;
  early = null;
  return taken;
}
