/** A dialog for one act: its fields, its button, and the error of the server. */
import { useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { Dialog, Problem } from "./elements.js";

/** A key that makes a repeated request harmless. */
const newKey = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

/**
 * A dialog that acts once; a repeated try has the same key, so the server acts once, too.
 * @param {{title: string, verb: string, isDanger?: boolean, isReady?: boolean, act: (headers: Record<string, string>) => Promise<unknown>, onClose: () => void, onDone: (answer: any) => void, children?: any}} props
 */
export function ActDialog({ title, verb, isDanger = false, isReady = true, act, onClose, onDone, children }) {
  const key = useMemo(newKey, []);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    act({ "idempotency-key": key }).then(
      (answer) => {
        onDone(answer);
        onClose();
      },
      (problem) => {
        setError(problem);
        setBusy(false);
      },
    );
  };
  return h(
    Dialog,
    { title, onClose },
    h(
      "form",
      { onSubmit: submit },
      children,
      h(Problem, { error }),
      h(
        "div",
        { class: "dialog-acts" },
        h("button", { class: "button", type: "button", onClick: onClose }, "Cancel"),
        h(
          "button",
          { class: `button ${isDanger ? "danger" : "primary"}`, type: "submit", disabled: isBusy || !isReady },
          isBusy ? `${verb} …` : verb,
        ),
      ),
    ),
  );
}

/** A line of text in a form. @param {{label: string, value: string, onInput: (value: string) => void, [name: string]: any}} props */
export function TextField({ label, value, onInput, ...rest }) {
  return h(
    "label",
    { class: "field" },
    label,
    h("input", {
      value,
      onInput: (/** @type {InputEvent} */ event) =>
        onInput(/** @type {HTMLInputElement} */ (event.currentTarget).value),
      ...rest,
    }),
  );
}

/** A choice in a form. @param {{label: string, value: string, options: {value: string, name: string}[], onChoose: (value: string) => void}} props */
export function SelectField({ label, value, options, onChoose }) {
  return h(
    "label",
    { class: "field" },
    label,
    h(
      "select",
      {
        value,
        onChange: (/** @type {Event} */ event) =>
          onChoose(/** @type {HTMLSelectElement} */ (event.currentTarget).value),
      },
      options.map((each) => h("option", { key: each.value, value: each.value }, each.name)),
    ),
  );
}

/** A box to tick. @param {{label: string, isOn: boolean, onChange: (isOn: boolean) => void}} props */
export function CheckField({ label, isOn, onChange }) {
  return h("label", {}, h("input", { type: "checkbox", checked: isOn, onChange: () => onChange(!isOn) }), ` ${label}`);
}
