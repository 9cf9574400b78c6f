import { createCipheriv, createDecipheriv, createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { ports, type Secret } from "@portico/core";

/**
 * Whether a text is a valid instance key. Node decodes leniently: several last letters give the same bytes, and only one of them
 * is valid.
 */
export function isInstanceKey(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text) && Buffer.from(text, "base64url").toString("base64url") === text;
}

/** Returns the key. Throws TypeError for an invalid one. */
export function checkInstanceKey(key: Secret): Secret {
  if (!isInstanceKey(key.reveal())) throw new TypeError("An instance key is 32 bytes in base64url: 43 characters");
  return key;
}

/** The instance's key, for one use of it. */
export interface SealKey {
  readonly id: string;
  readonly bytes: Buffer;
  /** Separates its keys from all others that are derived from the instance's key. */
  readonly derivation: string;
}

const FORMAT = "v1";
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const SEALED = /^v1\.([A-Za-z0-9_-]{11})\.([A-Za-z0-9_-]+)$/;

/** The key for one use, such as `portico/sealing`. */
export function toSealKey(instanceKey: Secret, derivation: string): SealKey {
  const bytes = Buffer.from(instanceKey.reveal(), "base64url");
  // Derived from the key, but reveals no part of it.
  const id = Buffer.from(hkdfSync("sha256", bytes, derivation, "id", 8)).toString("base64url");
  return { id, bytes, derivation };
}

/** Seals with AES-256-GCM. The text must be well-formed. */
export function sealText(key: SealKey, context: string, text: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyOf(key, context), iv);
  const sealed = Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return `${FORMAT}.${key.id}.${sealed.toString("base64url")}`;
}

/** The ID of the key that sealed a text. Undefined for a text that was not sealed. */
export function keyIdOf(sealed: string): string | undefined {
  const [, id, encoded = ""] = SEALED.exec(sealed) ?? [];
  return Buffer.from(encoded, "base64url").length < IV_BYTES + TAG_BYTES ? undefined : id;
}

/** The text that this key sealed. Throws SealBroken for anything else. */
export function openText(key: SealKey, context: string, sealed: string): string {
  const id = keyIdOf(sealed);
  if (id === undefined) throw new ports.SealBroken("damaged");
  if (id !== key.id) throw new ports.SealBroken("other-key");
  const encoded = sealed.slice(sealed.lastIndexOf(".") + 1);
  const bytes = Buffer.from(encoded, "base64url");
  // Several last letters give the same bytes, and only one of them was sealed.
  if (bytes.toString("base64url") !== encoded) throw new ports.SealBroken("damaged");
  try {
    const decipher = createDecipheriv("aes-256-gcm", keyOf(key, context), bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch (cause) {
    throw new ports.SealBroken("damaged", { cause });
  }
}

/** The keys of the contexts that were used last: some contexts are used by every call. */
const derived = new WeakMap<SealKey, Map<string, KeyObject>>();
const DERIVED_KEYS = 64;

/** Each context has its own key: each key then has few random nonces, so that none repeats. */
function keyOf(key: SealKey, context: string): KeyObject {
  const keys = derived.get(key) ?? new Map<string, KeyObject>();
  derived.set(key, keys);
  const known = keys.get(context);
  if (known) {
    // The map keeps the order of insertion: the key that was used last comes last.
    keys.delete(context);
    keys.set(context, known);
    return known;
  }
  const salt = hash("sha256", context, "buffer");
  const made = createSecretKey(Buffer.from(hkdfSync("sha256", key.bytes, key.derivation, salt, KEY_BYTES)));
  if (keys.size === DERIVED_KEYS) keys.delete(keys.keys().next().value!);
  keys.set(context, made);
  return made;
}
