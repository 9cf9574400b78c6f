import type { ports, Secret } from "@portico/core";
import { findOwnToken } from "../../platform/own-token.ts";
import type { RotatingSettings } from "../../platform/rotating-settings.ts";

/** Digests of the secrets that can be rotated, by the name of their setting. */
export type SecretDigests = ReadonlyMap<string, string>;

/** The digests of an app's secrets now: from the settings, and created by the instance. */
export async function digestSecrets(settings: RotatingSettings, secrets: ports.Secrets): Promise<SecretDigests> {
  const { agent, workflow, providers } = settings;
  const digest = (values: readonly (Secret | undefined)[]) =>
    secrets.digest(JSON.stringify(values.map((value) => value?.reveal() ?? null)));
  const holders = agent.tokens.map(({ token, userId, role }) => [secrets.digest(token.reveal()), userId, role]);
  return new Map([
    ["agent.tokens", secrets.digest(JSON.stringify(holders))],
    ["workflow.token", digest([workflow.token])],
    ...providers.map(({ id, credential, headers }): [string, string] => {
      const names = Object.keys(headers).sort();
      return [
        `providers.${id}`,
        secrets.digest(`${names.join()} ${digest([credential, ...names.map((name) => headers[name])])}`),
      ];
    }),
    ["agentServiceToken", digest([await findOwnToken(secrets, "agent")])],
    ["workflowServiceToken", digest([await findOwnToken(secrets, "workflow")])],
  ]);
}

/** The names whose secrets differ. A provider that is only in one of both is no rotation. */
export function changedSecrets(before: SecretDigests, after: SecretDigests): readonly string[] {
  return [...after].flatMap(([name, digest]) => (before.has(name) && before.get(name) !== digest ? [name] : []));
}
