import { CREDENTIAL_PREFIXES } from "@portico/core/contract";

/** What stands in place of a credential. */
export const MASK = "***";

/** Ends of names whose values are credentials, without other characters than letters. */
const CREDENTIAL_NAMES = [
  "password",
  "passwd",
  "passphrase",
  "secret",
  "token",
  "apikey",
  "authorization",
  "cookie",
  "privatekey",
];
/** First characters of credentials: those of this service, and those that well-known services document. */
const PREFIXES = [
  ...Object.values(CREDENTIAL_PREFIXES),
  ...["sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "whsec_"],
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "xoxb-", "xoxp-", "xoxa-", "AKIA", "AIza"],
];
/** Shorter words with these beginnings are ordinary words. */
const LEAST_CHARACTERS = 20;
const SCHEMES = new Set(["bearer", "basic"]);

/**
 * A value of JSON with its credentials masked: values of members with names such as `password`, words that begin as credentials do, and the given
 * secrets. It finds the usual forms, and not every secret.
 */
export function maskCredentials<T>(value: T, secrets: readonly string[] = []): T {
  return masked(value, secrets) as T;
}

function masked(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === "string") return maskedText(value, secrets);
  if (Array.isArray(value)) return value.map((each) => masked(each, secrets));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      isCredentialName(key) && (typeof each === "string" || typeof each === "number") ? MASK : masked(each, secrets),
    ]),
  );
}

function maskedText(text: string, secrets: readonly string[]): string {
  const shown = secrets.reduce((left, secret) => left.replaceAll(secret, MASK), maskedJson(text, secrets) ?? text);
  let before = "";
  return shown.replaceAll(/[\w.~+/=-]+/g, (word) => {
    const isCredential = isCredentialWord(word) || (SCHEMES.has(before) && word.length > 1);
    before = word.toLowerCase();
    return isCredential ? MASK : word;
  });
}

/** A member of JSON with a text or a number. The last text may have no end. */
const MEMBER = /"([^"\\]{1,100})"(\s{0,20}:\s{0,20})("[^"\\]*(?:\\.[^"\\]*)*"?|-?\d[\w.+-]*)/g;

/**
 * The same for a text that is JSON, as answers of tools are, or begins as JSON does, as the beginning of a long answer. Undefined for other texts, and
 * without a credential.
 */
function maskedJson(text: string, secrets: readonly string[]): string | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const shown = JSON.stringify(masked(value, secrets));
    return shown === JSON.stringify(value) ? undefined : shown;
  } catch {
    return text.replaceAll(MEMBER, (member, name: string, colon: string) =>
      isCredentialName(name) ? `"${name}"${colon}"${MASK}"` : member,
    );
  }
}

function isCredentialName(key: string): boolean {
  const letters = key.toLowerCase().replaceAll(/[^a-z]/g, "");
  return CREDENTIAL_NAMES.some((name) => letters.endsWith(name) || letters.endsWith(`${name}s`));
}

function isCredentialWord(word: string): boolean {
  if (word.length < LEAST_CHARACTERS) return false;
  // A JSON Web Token.
  if (word.startsWith("eyJ") && word.split(".").length === 3) return true;
  return PREFIXES.some((prefix) => word.startsWith(prefix));
}
