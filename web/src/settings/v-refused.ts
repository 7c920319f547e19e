import type { Directive } from "vue";

/** Marks a field as invalid before it is sent, so that the browser does not submit the form. */
export const vRefused: Directive<HTMLInputElement, string> = (field, { value }) => field.setCustomValidity(value);
