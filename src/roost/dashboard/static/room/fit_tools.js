/** The choice of the flavor whose room the map shows: a known one, or own amounts. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { setQuery } from "../page/router.js";
import { Problem, Select } from "../parts/elements.js";
import { Input } from "../parts/fields.js";
import { amountsOf, FIELDS, textOf } from "./room.js";

const OWN = "own amounts";

/**
 * @param {{
 *   fit: ReturnType<typeof import("./room_data.js").useWish>, isLoading: boolean, error: import("../page/api.js").ApiError | null,
 * }} props
 */
export function FitTools({ fit, isLoading, error }) {
  const { wishes, chosen, wish, isUnknown } = fit;
  const isNamed = wishes.some((each) => each.name === chosen);
  const flavor = wish?.request.flavor;
  const amounts = { vcpus: flavor?.vcpus ?? 1, memory_mb: flavor?.memory_mb ?? 0, root_gb: flavor?.root_gb ?? 0 };
  const own = amountsOf(chosen);
  const choose = (/** @type {string} */ value) => setQuery({ flavor: value === OWN ? textOf(amounts) : value });
  const change = (/** @type {string} */ name, /** @type {number} */ amount) =>
    setQuery({ flavor: textOf({ ...amounts, [name]: amount }) });
  return h(
    "div",
    { class: "map-tools bar-of-tools", role: "group", "aria-label": "Flavor to fit" },
    h(Select, {
      label: "Flavor",
      value: isNamed ? chosen : OWN,
      options: [
        ...wishes.map(({ name }) => ({ value: name, name })),
        { value: OWN, name: isUnknown ? "Choose a flavor" : "Own amounts" },
      ],
      onChoose: choose,
    }),
    own && !isNamed
      ? FIELDS.map(({ name, title }) =>
          h(Amount, { key: name, title, value: own[name], onAmount: (amount) => change(name, amount) }),
        )
      : null,
    isLoading ? h("span", { class: "second", role: "status" }, "Counting …") : null,
    isUnknown ? h("span", { class: "second", role: "status" }, `No flavor ${chosen} is known.`) : null,
    h(Problem, { error: error ?? fit.error }),
  );
}

/**
 * A number with its label; it counts when it is complete. The page may be drawn again during typing.
 * @param {{title: string, value: number, onAmount: (amount: number) => void}} props
 */
function Amount({ title, value, onAmount }) {
  const [state, setState] = useState({ value, typed: String(value) });
  const current = state.value === value ? state : { value, typed: String(value) };
  if (current !== state) setState(current);
  return h(
    "label",
    { class: "bar-of-tools" },
    title,
    h(Input, {
      type: "number",
      min: 0,
      max: 2 ** 31 - 1,
      step: 1,
      value: current.typed,
      style: { width: "7em" },
      onText: (typed) => setState({ value, typed }),
      onChange: (/** @type {Event} */ event) => {
        const input = /** @type {HTMLInputElement} */ (event.currentTarget);
        if (input.checkValidity() && input.value) onAmount(Number(input.value));
      },
    }),
  );
}
