/** The button to apply a plan of moves, with its limits and windows. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { counted } from "../page/format.js";
import { go } from "../page/router.js";
import { ActDialog } from "../parts/act.js";
import { CheckField, TextField } from "../parts/fields.js";
import { windowsIn } from "./sums.js";

/** @param {{plan: import("./drain_plan.js").Plan, atOnce: number}} props */
export function ApplyButton({ plan, atOnce }) {
  const [isOpen, setOpen] = useState(false);
  const [reason, setReason] = useState("it is drained");
  const [isDisabling, setDisabling] = useState(true);
  const [windows, setWindows] = useState("");
  const { services, steps = [] } = plan;
  if (!steps.length || !may("plans:apply")) return null;
  const start = async (/** @type {Record<string, string>} */ headers) => {
    if (isDisabling && may("services:update"))
      for (const name of services)
        await call("PATCH", `/services/${encodeURIComponent(name)}`, {
          body: { disabled: true, disabled_reason: reason },
        });
    const body = { moves: steps, at_once: atOnce, windows: windowsIn(windows) };
    return call("POST", "/plans/apply", { body, headers });
  };
  return [
    h(
      "button",
      { key: "b", class: "button primary", type: "button", onClick: () => setOpen(true) },
      "Apply the plan …",
    ),
    isOpen
      ? h(
          ActDialog,
          {
            key: "d",
            title: `Make ${counted(steps.length, "move")}`,
            verb: "Apply the plan",
            act: start,
            onClose: () => setOpen(false),
            onDone: (answer) => go(`/operations/${answer.operation}`),
          },
          h("p", {}, `${counted(steps.length, "move")}, ${atOnce} at once. Each is decided again when it begins.`),
          h(TextField, {
            label: "Windows in UTC, such as 22:00-06:00 or sat,sun@08:00-20:00; empty: always",
            value: windows,
            onText: setWindows,
          }),
          may("services:update")
            ? h(CheckField, {
                label: "Disable the hosts first, so that no new instances arrive",
                isOn: isDisabling,
                onChange: setDisabling,
              })
            : null,
          isDisabling && may("services:update")
            ? h(TextField, { label: "Reason", value: reason, onText: setReason, maxLength: 255 })
            : null,
        )
      : null,
  ];
}
