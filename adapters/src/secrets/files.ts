import { resolve } from "node:path";
import { defineAdapter, ports, Secret } from "@portico/core";
import { withFileLock } from "./files/file-lock.ts";
import { createSecretFile, type SecretFile } from "./files/secret-file.ts";
import { secretBytes } from "./secret-bytes.ts";
import { checkSecretName, revealKeepable } from "./secret-name.ts";

/** Options of `fileSecrets`. */
export interface FileSecretsOptions {
  /** The file: one JSON object of names and values. Only its owner can read it. A looser mode is corrected when it is read. */
  readonly path: string;
}

/**
 * The instance's secrets in one file that people may read. Several processes may use it at the same time: if two create the same
 * secret at their first start, one creates it and both get it. An invalid file is refused and left unchanged.
 */
export const fileSecrets = defineAdapter({
  name: "secrets/files",
  port: ports.secrets,
  needs: {},
  place: ({ path }: FileSecretsOptions) => resolve(path),
  open: (_given, options: FileSecretsOptions) => createFileSecrets(resolve(options.path)),
});

function createFileSecrets(path: string): ports.Secrets {
  const file = createSecretFile(path);
  // Next to the file and never removed: a lock on a replaced file would have no effect.
  const lockPath = `${path}.lock`;

  return {
    ...secretBytes,
    async keep(name, make) {
      checkSecretName(name);
      // Most starts find the secret: then no lock is needed, and the file may be read-only.
      return findKept(file, name) ?? withFileLock(lockPath, () => findKept(file, name) ?? keepNew(file, name, make()));
    },
    async find(name) {
      checkSecretName(name);
      return findKept(file, name)?.value;
    },
    async replace(name, value) {
      checkSecretName(name);
      withFileLock(lockPath, () => keepNew(file, name, value));
    },
  };
}

function findKept(file: SecretFile, name: string): ports.KeptSecret | undefined {
  const found = file.read().get(name);
  return found === undefined ? undefined : { value: new Secret(found), created: false };
}

function keepNew(file: SecretFile, name: string, value: Secret): ports.KeptSecret {
  file.write(new Map(file.read()).set(name, revealKeepable(name, value)));
  return { value, created: true };
}
