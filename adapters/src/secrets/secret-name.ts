import type { Secret } from "@portico/core";

const NAME = /^[A-Za-z0-9._:/-]{1,128}$/;

/** Throws TypeError for an invalid secret name. Valid: 1-128 letters, digits and `.`, `_`, `:`, `/`, `-`. */
export function checkSecretName(name: string): void {
  if (!NAME.test(name)) throw new TypeError("A secret's name is 1-128 of letters, digits and . _ : / -");
}

/** The value to store. Throws TypeError for an empty one, which is not secret. */
export function revealKeepable(name: string, value: Secret): string {
  const text = value.reveal();
  if (text === "") throw new TypeError(`The secret ${name} is empty`);
  return text;
}
