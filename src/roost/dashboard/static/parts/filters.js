/** Filters of a list: choices that are part of the address, so a link shares them. */
import { h } from "preact";
import { place, setQuery } from "../page/router.js";
import { Choice, Select } from "./elements.js";

/** @typedef {{value: string, name: string}} Option */

/** The chosen value; the usual one if the address has none. @param {string} name in the query @param {string} [usual] */
export const chosenOf = (name, usual = "") => place.value.query.get(name) ?? usual;

/** Choose a value; the list begins again at its first page. @param {string} name @param {string} value @param {string} usual */
const choose = (name, value, usual) => setQuery({ [name]: value === usual ? null : value, cursor: null });

/** A filter with few values, as buttons. @param {{name: string, label: string, options: Option[], usual?: string}} props */
export function ChoiceFilter({ name, label, options, usual = "" }) {
  return h(Choice, { label, value: chosenOf(name, usual), options, onChoose: (value) => choose(name, value, usual) });
}

/** A filter with many values, as a list. @param {{name: string, label: string, options: Option[], usual?: string}} props */
export function SelectFilter({ name, label, options, usual = "" }) {
  return h(Select, { label, value: chosenOf(name, usual), options, onChoose: (value) => choose(name, value, usual) });
}

/** Periods until now, in seconds. */
const PERIODS = [
  { value: "", name: "Any time" },
  { value: "3600", name: "Hour" },
  { value: "86400", name: "Day" },
  { value: "604800", name: "Week" },
];

/** The start of the chosen period, in seconds since the epoch; null: all times. */
export function periodStart() {
  const period = Number(chosenOf("period"));
  return period > 0 ? Math.floor(Date.now() / 1000) - period : null;
}

/** A filter for the last hour, day or week. */
export const PeriodFilter = () => h(ChoiceFilter, { name: "period", label: "Period", options: PERIODS });
