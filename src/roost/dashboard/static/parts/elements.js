/** Parts that all views share. */
import { useEffect, useRef } from "preact/hooks";
import { h } from "preact";
import { age, count, dateTime, percent, whenText } from "../page/format.js";

/** @typedef {{title: any, cell: (row: any) => any, isNumber?: boolean, class?: string}} Column of a table */

/** The head of a view: title, what is below it, and acts at the right. @param {{title: any, second?: any, crumbs?: any, acts?: any}} props */
export function Head({ title, second, crumbs, acts }) {
  return h(
    "div",
    { class: "head" },
    h(
      "div",
      {},
      crumbs ? h("div", { class: "crumbs" }, crumbs) : null,
      h("h1", {}, title),
      second ? h("p", { class: "second" }, second) : null,
    ),
    acts ? h("div", { class: "acts" }, acts) : null,
  );
}

/** A card with a heading. @param {{title?: any, second?: any, flush?: boolean, children?: any, class?: string, acts?: any}} props */
export function Card({ title, second, flush = false, children, class: more = "", acts }) {
  const heading = title
    ? h(
        "div",
        {
          class: "card-head",
        },
        h("div", {}, h("h2", {}, title), second ? h("p", { class: "second" }, second) : null),
        acts,
      )
    : null;
  return h("section", { class: `card${flush ? " flush" : ""} ${more}` }, heading, children);
}

/** An error in the words of the server; a button to try again if that can help. @param {{error: (Error & {status?: number}) | null, again?: () => void}} props */
export function Problem({ error, again }) {
  if (!error) return null;
  const canHelp = ![400, 403, 404].includes(error.status ?? 0);
  return h(
    "div",
    { class: "problem", role: "alert" },
    error.message,
    again && canHelp
      ? [" ", h("button", { class: "button small", type: "button", onClick: again }, "Try again")]
      : null,
  );
}

/** Says what the roles of the client do not allow. @param {{to: string}} props to: such as `drain hosts` */
export function NoRight({ to }) {
  return h("div", { class: "notice" }, `Your roles do not allow you to ${to}.`);
}

/**
 * What a view shows before its data, and the data.
 * @param {{of: {data: any, error: Error | null, isLoading: boolean, again: () => void}, head?: any, children: (data: any) => any}} props head: of the view, until there is data
 */
export function Loaded({ of, head, children }) {
  const { data, error, isLoading, again } = of;
  return h(
    "div",
    {},
    data === null ? head : null,
    h(Problem, { error, again }),
    data === null && isLoading
      ? h("div", { class: "empty", role: "status" }, h("div", { class: "progress" }), "Loading …")
      : null,
    data === null ? null : children(data),
  );
}

/** A share of a whole as a bar. @param {{share: number, stranded?: number, label?: string}} props */
export function Meter({ share, stranded = 0, label }) {
  const used = Math.max(0, Math.min(1, share));
  const rest = Math.max(0, Math.min(1 - used, stranded));
  return h(
    "div",
    { class: "meter", role: "img", "aria-label": label ?? `${percent(share)} used` },
    h("span", { class: share > 1 ? "over" : "", style: { width: percent(used, 2) } }),
    rest ? h("span", { class: "stranded", style: { width: percent(rest, 2) } }) : null,
  );
}

/**
 * A table.
 * @param {{columns: Column[], rows: any[], keyOf: (row: any) => string | number, label: string, empty?: any, rowClass?: (row: any) => string}} props
 */
export function Table({ columns, rows, keyOf, label, empty = "Nothing here.", rowClass }) {
  if (!rows.length) return h("div", { class: "empty" }, empty);
  return h(
    "div",
    { class: "table-box", tabIndex: 0, role: "region", "aria-label": label },
    h(
      "table",
      {},
      h("caption", { class: "hidden-text" }, label),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((column, at) =>
            h("th", { key: at, scope: "col", class: column.isNumber ? "number" : "" }, column.title),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            { key: keyOf(row), class: rowClass?.(row) },
            columns.map((column, at) =>
              h("td", { key: at, class: `${column.isNumber ? "number" : ""} ${column.class ?? ""}` }, column.cell(row)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** A number that fades when it is zero. @param {{value: number}} props */
export function Count({ value }) {
  return h("span", { class: value ? "" : "zero" }, count(value));
}

/** A choice of a few values, as buttons. @param {{label: string, value: string, options: {value: string, name: string}[], onChoose: (value: string) => void}} props */
export function Choice({ label, value, options, onChoose }) {
  return h(
    "div",
    { class: "choice", role: "group", "aria-label": label },
    options.map((each) =>
      h(
        "button",
        {
          key: each.value,
          type: "button",
          "aria-pressed": each.value === value ? "true" : "false",
          onClick: () => onChoose(each.value),
        },
        each.name,
      ),
    ),
  );
}

/** A choice from a list. @param {{label: string, value: string, options: {value: string, name: string}[], onChoose: (value: string) => void}} props */
export function Select({ label, value, options, onChoose }) {
  return h(
    "select",
    {
      "aria-label": label,
      value,
      onChange: (/** @type {Event} */ event) => onChoose(/** @type {HTMLSelectElement} */ (event.currentTarget).value),
    },
    options.map((each) => h("option", { key: each.value, value: each.value }, each.name)),
  );
}

/** Facts as pairs. @param {{rows: [any, any][]}} props */
export function Facts({ rows }) {
  return h(
    "dl",
    { class: "facts" },
    rows.flatMap(([name, value], at) => [h("dt", { key: `n${at}` }, name), h("dd", { key: `v${at}` }, value)]),
  );
}

/** A dialog that blocks the page until it is closed. @param {{title: string, onClose: () => void, children?: any}} props */
export function Dialog({ title, onClose, children }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const element = ref.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return h("dialog", { ref, "aria-label": title, onClose }, h("h2", {}, title), children);
}

/** The age of a time, with the time itself under the pointer; isExact: the time, with its age. @param {{seconds: number | null | undefined, isExact?: boolean}} props since the epoch */
export function When({ seconds, isExact = false }) {
  if (!seconds) return "–";
  const title = isExact ? `${dateTime(seconds)}, ${age(seconds)}` : dateTime(seconds);
  return h(
    "time",
    { title, dateTime: new Date(1000 * seconds).toISOString() },
    isExact ? whenText(seconds) : age(seconds),
  );
}

/** Granted or refused, never by colour alone. @param {{outcome: string}} props */
export function Outcome({ outcome }) {
  const isGranted = outcome === "granted";
  return h("span", { class: `badge ${isGranted ? "granted" : "refused"}` }, isGranted ? "✓ Granted" : "✕ Refused");
}
