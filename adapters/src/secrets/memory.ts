import { defineAdapter, ports, Secret } from "@portico/core";
import { secretBytes } from "./secret-bytes.ts";
import { checkSecretName, revealKeepable } from "./secret-name.ts";

/** Secrets in this process's memory: every start makes new ones. For tests and for trying things out. */
export const memorySecrets = defineAdapter({
  name: "secrets/memory",
  port: ports.secrets,
  needs: {},
  open: () => createMemorySecrets(),
});

function createMemorySecrets(): ports.Secrets {
  const kept = new Map<string, string>();
  return {
    ...secretBytes,
    async keep(name, make) {
      checkSecretName(name);
      const found = kept.get(name);
      if (found !== undefined) return { value: new Secret(found), created: false };
      const value = make();
      kept.set(name, revealKeepable(name, value));
      return { value, created: true };
    },
    async find(name) {
      checkSecretName(name);
      const found = kept.get(name);
      return found === undefined ? undefined : new Secret(found);
    },
    async replace(name, value) {
      checkSecretName(name);
      kept.set(name, revealKeepable(name, value));
    },
  };
}
