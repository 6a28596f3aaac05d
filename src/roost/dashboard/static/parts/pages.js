/** The buttons below a page of a list. */
import { h } from "preact";
import { setQuery } from "../page/router.js";

/** @param {{next: string | null, cursor: string}} props */
export function Pages({ next, cursor }) {
  if (!next && !cursor) return null;
  return h(
    "div",
    { class: "bar-of-tools table-end" },
    cursor
      ? h("button", { class: "button", type: "button", onClick: () => setQuery({ cursor: null }) }, "First page")
      : null,
    next
      ? h("button", { class: "button", type: "button", onClick: () => setQuery({ cursor: next }) }, "Next page")
      : h("span", { class: "second" }, "This is the last page."),
  );
}
