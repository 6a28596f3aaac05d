/** What a browser sends to be known to the server. It imports nothing, so it is there before the other modules. */

const KEY = "roost.session-key";

/** A fact of the server in the page. @param {string} name */
export const fact = (name) => document.querySelector(`meta[name="roost-${name}"]`)?.getAttribute("content") ?? "";
export const authentication = fact("authentication");

/** Return the headers that authenticate this browser. */
export function credentials() {
  /** @type {Record<string, string>} */
  const headers = {};
  if (authentication === "noauth2") headers["x-auth-token"] = "admin";
  const key = localStorage.getItem(KEY);
  if (key) headers["x-roost-session-key"] = key;
  return headers;
}

/** Whether a call of this browser can succeed. */
export const hasCredentials = () => Object.keys(credentials()).length > 0;

/** Keep the key of a session; an empty one ends it. @param {string} key */
export function keepKey(key) {
  if (key) localStorage.setItem(KEY, key);
  else localStorage.removeItem(KEY);
}
