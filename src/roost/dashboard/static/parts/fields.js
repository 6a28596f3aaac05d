/** Fields of forms: lines of text, choices and boxes to tick, each with its label. */
import { useEffect, useState } from "preact/hooks";
import { h } from "preact";
import { Select } from "./elements.js";

/**
 * A line of text, or a text of several lines.
 * @param {{value: string | number, onText: (text: string) => void, isLong?: boolean, [name: string]: any}} props
 */
export function Input({ onText, isLong = false, ...rest }) {
  const onInput = (/** @type {InputEvent} */ event) =>
    onText(/** @type {HTMLInputElement} */ (event.currentTarget).value);
  return h(isLong ? "textarea" : "input", { onInput, ...rest });
}

/** A text with a label above. @param {{label: string, value: string, onText: (text: string) => void, [name: string]: any}} props */
export function TextField({ label, ...rest }) {
  return h("label", { class: "field" }, label, h(Input, rest));
}

/** A choice with a label above. @param {{label: string, value: string, options: {value: string, name: string}[], onChoose: (value: string) => void}} props */
export function SelectField(props) {
  return h("label", { class: "field" }, props.label, h(Select, props));
}

/** A box to tick. @param {{label: string, isOn: boolean, onChange: (isOn: boolean) => void, class?: string}} props */
export function CheckField({ label, isOn, onChange, class: name }) {
  return h(
    "label",
    { class: name },
    h("input", { type: "checkbox", checked: isOn, onChange: () => onChange(!isOn) }),
    ` ${label}`,
  );
}

/**
 * Texts to search for; they count when the form is submitted.
 * @param {{texts: Record<string, string>, labels: Record<string, string>, size?: number, onSearch: (texts: Record<string, string>) => void, children?: any}} props
 *     texts: those of the present search; labels: by the name of each field
 */
export function SearchForm({ texts, labels, size = 16, onSearch, children }) {
  const [typed, setTyped] = useState(texts);
  useEffect(() => setTyped(texts), Object.values(texts));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    onSearch(Object.fromEntries(Object.entries(typed).map(([name, text]) => [name, text.trim()])));
  };
  return h(
    "form",
    { class: "bar-of-tools", role: "search", onSubmit: submit },
    Object.entries(labels).map(([name, label]) =>
      h(Input, {
        key: name,
        type: "search",
        size,
        placeholder: label,
        "aria-label": label,
        value: typed[name] ?? "",
        onText: (text) => setTyped({ ...typed, [name]: text }),
      }),
    ),
    children,
    h("button", { class: "button", type: "submit" }, "Find"),
  );
}
