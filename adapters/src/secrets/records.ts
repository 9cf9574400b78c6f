import { defineAdapter, ports, Secret, StoreForeign } from "@portico/core";
import { checkInstanceKey, keyIdOf, openText, type SealKey, sealText, toSealKey } from "../sealing/sealed-text.ts";
import { secretBytes } from "./secret-bytes.ts";
import { checkSecretName, revealKeepable } from "./secret-name.ts";

/** Options of `recordSecrets`. */
export interface RecordSecretsOptions {
  /** The instance's key: 32 random bytes in base64url, 43 characters. All processes with these records must have the same one. */
  readonly key: Secret;
  /**
   * Keys that open secrets and seal none: earlier keys, or the next one, while the key is changed. Opening seals all secrets of
   * these keys again, with `key`. Default: none.
   */
  readonly otherKeys?: readonly Secret[] | undefined;
}

/**
 * The instance's secrets as records, encrypted with AES-256-GCM under the instance's key. Any number of processes that share the
 * records may use them. Opening throws TypeError for an invalid key, and SecretsUnavailable if the secrets are sealed with a
 * key that is not among the given ones.
 */
export const recordSecrets = defineAdapter({
  name: "secrets/records",
  port: ports.secrets,
  needs: { records: ports.records },
  async open({ records }, { key, otherKeys = [] }: RecordSecretsOptions) {
    const [own, ...others] = [key, ...otherKeys].map((each) => toSealKey(checkInstanceKey(each), DERIVATION));
    const keys: SealKeys = { own: own!, others };
    const kept = records.collection<KeptRecord>({ name: "instance-secrets" });
    await checkProbe(kept, keys);
    await sealAgain(kept, keys);
    return createRecordSecrets(kept, keys);
  },
});

const DERIVATION = "portico/secrets";
const PAGE = 200;
/** A record that only shows which key the others are sealed with. No secret can have its name. */
const PROBE = "$probe";

/** The key that seals, and the keys that only open. */
interface SealKeys {
  readonly own: SealKey;
  readonly others: readonly SealKey[];
}

interface KeptRecord {
  readonly sealed: string;
}

function createRecordSecrets(kept: ports.Collection<KeptRecord>, keys: SealKeys): ports.Secrets {
  const find = async (name: string): Promise<Secret | undefined> => {
    checkSecretName(name);
    const found = await reached(kept.get(name));
    return found && new Secret(unseal(keys, name, found.value));
  };

  return {
    ...secretBytes,
    find,
    async keep(name, make) {
      let made: Secret | undefined;
      for (;;) {
        const found = await find(name);
        if (found) return { value: found, created: false };
        made ??= make();
        const record = seal(keys.own, name, revealKeepable(name, made));
        if (await putAbsent(kept, name, record)) return { value: made, created: true };
      }
    },
    async replace(name, value) {
      checkSecretName(name);
      await reached(kept.put(name, seal(keys.own, name, revealKeepable(name, value))));
    },
  };
}

/** Fails early: with another key, each secret would fail at its first use. */
async function checkProbe(kept: ports.Collection<KeptRecord>, keys: SealKeys): Promise<void> {
  const found = await reached(kept.get(PROBE));
  if (found) return void unseal(keys, PROBE, found.value);
  if (!(await putAbsent(kept, PROBE, seal(keys.own, PROBE, PROBE)))) await checkProbe(kept, keys);
}

/** Seal the secrets of other keys with the own key. Other processes may do the same: each of them can open both. */
async function sealAgain(kept: ports.Collection<KeptRecord>, keys: SealKeys): Promise<void> {
  if (keys.others.length === 0) return;
  for (let after: string | undefined; ;) {
    const page = await reached(kept.query({ limit: PAGE, ...(after !== undefined && { after }) }));
    for (const { id, version, value } of page.items) {
      if (keyIdOf(value.sealed) === keys.own.id) continue;
      const again = seal(keys.own, id, unseal(keys, id, value));
      // A conflict is a newer secret, or another process that seals it again.
      await reached(kept.put(id, again, version)).catch((error: unknown) => {
        if (!(error instanceof ports.RecordConflict)) throw error;
      });
    }
    if (page.next === undefined) return;
    after = page.next;
  }
}

/** False if another caller was first. */
async function putAbsent(kept: ports.Collection<KeptRecord>, id: string, record: KeptRecord): Promise<boolean> {
  try {
    await kept.put(id, record, "absent");
    return true;
  } catch (error) {
    if (error instanceof ports.RecordConflict) return false;
    throw toUnavailable(error);
  }
}

const OTHER_KEY =
  "The secrets of this instance are sealed under another instance key: start every process with the key of the first start";

function seal(key: SealKey, name: string, text: string): KeptRecord {
  // As JSON, because a secret may be a text that UTF-8 cannot hold.
  return { sealed: sealText(key, name, JSON.stringify(text)) };
}

function unseal({ own, others }: SealKeys, name: string, { sealed }: KeptRecord): string {
  const id = keyIdOf(sealed);
  const key = others.find((other) => other.id === id) ?? own;
  try {
    return JSON.parse(openText(key, name, sealed)) as string;
  } catch (cause) {
    const isOther = cause instanceof ports.SealBroken && cause.reason === "other-key";
    if (!isOther) throw new ports.SecretsUnavailable(`The stored secret ${name} is damaged`, { cause });
    throw new ports.SecretsUnavailable(OTHER_KEY, { cause: new StoreForeign(OTHER_KEY, { cause }) });
  }
}

async function reached<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw toUnavailable(error);
  }
}

function toUnavailable(error: unknown): unknown {
  if (!(error instanceof ports.RecordsUnavailable)) return error;
  return new ports.SecretsUnavailable("The records with the secrets cannot be read or written", { cause: error });
}
