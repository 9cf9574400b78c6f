import { resolve } from "node:path";
import { defineAdapter, ports, Secret } from "@portico/core";
import { withFileLock } from "./files/file-lock.ts";
import { createSecretFile, type SecretFile } from "./files/secret-file.ts";
import { secretBytes } from "./secret-bytes.ts";
import { checkSecretName, revealKeepable } from "./secret-name.ts";

export interface FileSecretsOptions {
  /** The file: one JSON object of names and values. Only its owner can read it; a looser mode is set right when it is read. */
  readonly path: string;
}

/**
 * The instance's secrets in one file that people may look into. Several processes may use it at the same time: of two that make
 * the same secret at their first start, one does and both get it. A file that is not as it should be is refused and left alone.
 */
export const fileSecrets = defineAdapter({
  name: "secrets/files",
  port: ports.secrets,
  needs: {},
  open: (_given, options: FileSecretsOptions) => createFileSecrets(resolve(options.path)),
});

function createFileSecrets(path: string): ports.Secrets {
  const file = createSecretFile(path);
  // Beside the file and never removed: a lock on a file that somebody replaces holds nobody back.
  const lockPath = `${path}.lock`;

  return {
    ...secretBytes,
    async keep(name, make) {
      checkSecretName(name);
      // Most starts find it: then no lock is needed, and a file that cannot be written will do.
      return findKept(file, name) ?? withFileLock(lockPath, () => findKept(file, name) ?? keepNew(file, name, make()));
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
