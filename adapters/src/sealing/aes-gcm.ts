import { defineAdapter, ports, Secret } from "@portico/core";
import { isRecordId } from "../records/record-text.ts";
import { checkInstanceKey, keyIdOf, openText, type SealKey, sealText, toSealKey } from "./sealed-text.ts";

export { isInstanceKey } from "./sealed-text.ts";

/** Options of `aesGcmSealing`. */
export interface AesGcmSealingOptions {
  /**
   * The instance's key: 32 random bytes in base64url, 43 characters. Default: a generated key, stored with the port `secrets`.
   */
  readonly key?: Secret | undefined;
  /** Keys that open sealed values and seal none: earlier keys, or the next one, while the key is changed. Default: none. */
  readonly otherKeys?: readonly Secret[] | undefined;
}

/**
 * Seals with AES-256-GCM in this process. Without a given key, a key is created at the first sealing. Opening throws TypeError
 * for an invalid key, and SealingUnavailable if values were sealed with a key that is neither given nor stored any more.
 */
export const aesGcmSealing = defineAdapter({
  name: "sealing/aes-gcm",
  port: ports.sealing,
  needs: { secrets: ports.secrets },
  open: async ({ secrets }, { key, otherKeys = [] }: AesGcmSealingOptions) =>
    createSealing(await openKeys(secrets, key, otherKeys)),
});

/**
 * The ID of the key with which the instance sealed values last; undefined if it has sealed none. Throws SealingUnavailable if no given or stored
 * key has this ID, and TypeError for an invalid key. Writes nothing.
 */
export async function usedKeyId(
  secrets: Pick<ports.Secrets, "find">,
  { key, otherKeys = [] }: AesGcmSealingOptions,
): Promise<string | undefined> {
  const known = [...(key ? [key] : []), ...otherKeys].map((each) => toKey(checkInstanceKey(each)).id);
  const used = (await secrets.find(KEY_ID))?.reveal();
  if (used === undefined || known.includes(used)) return used;
  const kept = await secrets.find(KEY);
  if (kept && toKey(kept).id === used) return used;
  // Fails early, while no data is lost. Without this, runs with sealed values would fail one by one.
  throw new ports.SealingUnavailable(
    `Values of this instance are sealed under another instance key: give it back, or remove ${KEY_ID} from the secrets to go on without them`,
  );
}

/** Names under which the key, and the ID of the last used key, are stored. */
const KEY = "instanceKey";
const KEY_ID = "instanceKeyId";

const DERIVATION = "portico/sealing";

interface Keys {
  /** The key for sealing. */
  own(): Promise<SealKey>;
  /** One of the instance's keys, by its ID. */
  find(id: string): Promise<SealKey | undefined>;
}

async function openKeys(secrets: ports.Secrets, option: Secret | undefined, otherKeys: readonly Secret[]): Promise<Keys> {
  const given = option && toKey(checkInstanceKey(option));
  const others = otherKeys.map((key) => toKey(checkInstanceKey(key)));
  const isOther = (id: string | undefined): boolean => others.some((other) => other.id === id);
  let kept: SealKey | undefined;
  const findKept = async () => {
    const found = kept ? undefined : await secrets.find(KEY);
    return (kept ??= found && toKey(found));
  };
  const used = await usedKeyId(secrets, { key: option, otherKeys });
  // From now on, this key seals: the other one may be taken away later.
  if (given && isOther(used)) await secrets.replace(KEY_ID, new Secret(given.id));
  const choose = async (): Promise<SealKey> => {
    const key = given ?? (kept = toKey((await secrets.keep(KEY, () => secrets.create(""))).value));
    if ((await secrets.find(KEY_ID))?.reveal() !== key.id) await secrets.replace(KEY_ID, new Secret(key.id));
    return key;
  };
  let own: Promise<SealKey> | undefined;
  return {
    own: () =>
      (own ??= choose().catch((error: unknown) => {
        own = undefined;
        throw error;
      })),
    async find(id) {
      if (given?.id === id) return given;
      const other = others.find((each) => each.id === id);
      if (other) return other;
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
      return sealText(await keys.own().catch(unavailable), context, text);
    },
    async open(context, sealed) {
      checkContext(context);
      const id = keyIdOf(sealed);
      if (id === undefined) throw new ports.SealBroken("damaged");
      const key = await keys.find(id).catch(unavailable);
      if (!key) throw new ports.SealBroken("other-key");
      return openText(key, context, sealed);
    },
    async isOutdated(sealed) {
      const id = keyIdOf(sealed);
      return id !== undefined && id !== (await keys.own().catch(unavailable)).id;
    },
  };
}

function toKey(secret: Secret): SealKey {
  return toSealKey(secret, DERIVATION);
}

function checkContext(context: string): void {
  if (!isRecordId(context)) throw new TypeError("A context is 1-512 well-formed characters without U+0000");
}

function unavailable(cause: unknown): never {
  throw cause instanceof ports.SecretsUnavailable
    ? new ports.SealingUnavailable("The instance's key cannot be reached", { cause })
    : cause;
}
