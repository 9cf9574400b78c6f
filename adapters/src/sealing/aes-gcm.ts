import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from "node:crypto";
import { defineAdapter, ports, Secret } from "@portico/core";
import { isRecordId } from "../records/record-text.ts";

/** Options of `aesGcmSealing`. */
export interface AesGcmSealingOptions {
  /**
   * The instance's key: 32 random bytes in base64url, 43 characters. Default: a generated key, stored with the port `secrets`.
   */
  readonly key?: Secret | undefined;
}

/**
 * Whether a text is a valid instance key. Node decodes leniently: several last letters give the same bytes, and only one of them
 * is valid.
 */
export function isInstanceKey(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text) && Buffer.from(text, "base64url").toString("base64url") === text;
}

/**
 * Seals with AES-256-GCM in this process. Without a given key, a key is created at the first sealing. Opening throws TypeError
 * for an invalid key, and SealingUnavailable if values were sealed with a key that is neither given nor stored any more.
 */
export const aesGcmSealing = defineAdapter({
  name: "sealing/aes-gcm",
  port: ports.sealing,
  needs: { secrets: ports.secrets },
  open: async ({ secrets }, { key }: AesGcmSealingOptions) => createSealing(await openKeys(secrets, key)),
});

/** Names under which the key, and the ID of the last used key, are stored. */
const KEY = "instanceKey";
const KEY_ID = "instanceKeyId";

/** Separates these keys from all others that are derived from the instance's key. */
const DERIVATION = "portico/sealing";
const FORMAT = "v1";
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const SEALED = /^v1\.([A-Za-z0-9_-]{11})\.([A-Za-z0-9_-]+)$/;

interface InstanceKey {
  readonly id: string;
  readonly bytes: Buffer;
}

interface Keys {
  /** The key for sealing. */
  own(): Promise<InstanceKey>;
  /** One of the instance's keys, by its ID. */
  find(id: string): Promise<InstanceKey | undefined>;
}

async function openKeys(secrets: ports.Secrets, option: Secret | undefined): Promise<Keys> {
  if (option && !isInstanceKey(option.reveal())) throw new TypeError("An instance key is 32 bytes in base64url: 43 characters");
  const given = option && toKey(option);
  let kept: InstanceKey | undefined;
  const findKept = async () => {
    const found = kept ? undefined : await secrets.find(KEY);
    return (kept ??= found && toKey(found));
  };
  const used = (await secrets.find(KEY_ID))?.reveal();
  // Fails early, while no data is lost. Without this, runs with sealed values would fail one by one.
  if (used !== undefined && used !== given?.id && used !== (await findKept())?.id) {
    throw new ports.SealingUnavailable(
      `Values of this instance are sealed under another instance key: give it back, or remove ${KEY_ID} from the secrets to go on without them`,
    );
  }
  const choose = async (): Promise<InstanceKey> => {
    const key = given ?? (kept = toKey((await secrets.keep(KEY, () => secrets.create(""))).value));
    if ((await secrets.find(KEY_ID))?.reveal() !== key.id) await secrets.replace(KEY_ID, new Secret(key.id));
    return key;
  };
  let own: Promise<InstanceKey> | undefined;
  return {
    own: () =>
      (own ??= choose().catch((error: unknown) => {
        own = undefined;
        throw error;
      })),
    async find(id) {
      if (given?.id === id) return given;
      const found = await findKept();
      return found?.id === id ? found : undefined;
    },
  };
}

function createSealing(keys: Keys): ports.Sealing {
  return {
    async seal(context, text) {
      checkContext(context);
      // UTF-8 would replace a lone surrogate by U+FFFD: the opened text would differ.
      if (!text.isWellFormed()) throw new TypeError("A text to seal must be one that UTF-8 can hold");
      const key = await keys.own().catch(unavailable);
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", keyOf(key, context), iv);
      const sealed = Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `${FORMAT}.${key.id}.${sealed.toString("base64url")}`;
    },
    async open(context, sealed) {
      checkContext(context);
      const [, id = "", encoded = ""] = SEALED.exec(sealed) ?? [];
      const bytes = Buffer.from(encoded, "base64url");
      if (bytes.length < IV_BYTES + TAG_BYTES) throw new ports.SealBroken("damaged");
      const key = await keys.find(id).catch(unavailable);
      if (!key) throw new ports.SealBroken("other-key");
      try {
        const decipher = createDecipheriv("aes-256-gcm", keyOf(key, context), bytes.subarray(0, IV_BYTES));
        decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
        return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]).toString("utf8");
      } catch (cause) {
        throw new ports.SealBroken("damaged", { cause });
      }
    },
  };
}

function toKey(secret: Secret): InstanceKey {
  const bytes = Buffer.from(secret.reveal(), "base64url");
  // Derived from the key, but reveals no part of it.
  const id = Buffer.from(hkdfSync("sha256", bytes, DERIVATION, "id", 8)).toString("base64url");
  return { id, bytes };
}

/** Each context has its own key: each key then has few random nonces, so that none repeats. */
function keyOf({ bytes }: InstanceKey, context: string): Buffer {
  return Buffer.from(hkdfSync("sha256", bytes, DERIVATION, hash("sha256", context, "buffer"), KEY_BYTES));
}

function checkContext(context: string): void {
  if (!isRecordId(context)) throw new TypeError("A context is 1-512 well-formed characters without U+0000");
}

function unavailable(cause: unknown): never {
  throw cause instanceof ports.SecretsUnavailable
    ? new ports.SealingUnavailable("The instance's key cannot be reached", { cause })
    : cause;
}
