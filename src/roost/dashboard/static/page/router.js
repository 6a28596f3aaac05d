/** The path of the page: which view it shows, and the state that a link shares. */
import { signal } from "@preact/signals";
import { h } from "preact";
import { fact } from "./credentials.js";

export const prefix = fact("prefix") || "/ui";

/** @typedef {{path: string, query: URLSearchParams}} Place */

/** @returns {Place} */
function read() {
  const path = location.pathname.slice(prefix.length).replace(/\/+$/, "") || "/";
  return { path, query: new URLSearchParams(location.search) };
}

export const place = signal(read());
addEventListener("popstate", () => (place.value = read()));

/**
 * Show another view.
 * @param {string} to path below the prefix, with its query
 * @param {{replace?: boolean}} [options] replace: without a new entry in the history
 */
export function go(to, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", prefix + to);
  place.value = read();
  if (!replace) scrollTo(0, 0);
}

/**
 * Change the query of the present path; empty values leave it.
 * @param {Record<string, string | null | undefined>} changes
 */
export function setQuery(changes) {
  const query = new URLSearchParams(place.peek().query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(place.peek().path + (text ? `?${text}` : ""), { replace: true });
}

/**
 * A link to another view.
 * @param {{to: string, class?: string, children?: any, [name: string]: any}} props
 */
export function Link({ to, children, ...rest }) {
  /** @param {MouseEvent} event */
  const follow = (event) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return h("a", { href: prefix + to, onClick: follow, ...rest }, children);
}

/** Return the parts of a path, decoded: `/hosts/a%2Fb` has `hosts` and `a/b`. @param {string} path */
export function partsOf(path) {
  return path
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}
