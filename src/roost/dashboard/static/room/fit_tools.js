/** The choice of the flavor whose room the map shows: a known one, or own amounts. */
import { h } from "preact";
import { setQuery } from "../page/router.js";
import { Problem, Select } from "../parts/elements.js";
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
  const change = (/** @type {string} */ name, /** @type {Event} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    if (input.checkValidity() && input.value) setQuery({ flavor: textOf({ ...amounts, [name]: Number(input.value) }) });
  };
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
          h(
            "label",
            { key: name, class: "bar-of-tools" },
            title,
            h("input", {
              type: "number",
              min: 0,
              max: 2 ** 31 - 1,
              step: 1,
              value: own[name],
              style: { width: "7em" },
              onChange: (/** @type {Event} */ event) => change(name, event),
            }),
          ),
        )
      : null,
    isLoading ? h("span", { class: "second", role: "status" }, "Counting …") : null,
    isUnknown ? h("span", { class: "second", role: "status" }, `No flavor ${chosen} is known.`) : null,
    h(Problem, { error: error ?? fit.error }),
  );
}
