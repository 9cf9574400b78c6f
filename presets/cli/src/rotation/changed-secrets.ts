import type { ports, Secret } from "@portico/core";
import { findOwnToken } from "@portico/presets/platform/own-token";
import type { RotatingSettings } from "@portico/presets/settings/rotating-settings";
import { readGivenCertificate } from "../https/certificate.ts";

/** Digests of the secrets that can be rotated, by the name of their setting. */
export type SecretDigests = ReadonlyMap<string, string>;

/** The digests of an app's secrets now: from the settings, and created by the instance. */
export async function digestSecrets(settings: RotatingSettings, secrets: ports.Secrets): Promise<SecretDigests> {
  const { agent, workflow, providers, mcpServers, cluster } = settings;
  const digest = (values: readonly (Secret | undefined)[]) =>
    secrets.digest(JSON.stringify(values.map((value) => value?.reveal() ?? null)));
  const holders = agent.tokens.map(({ token, userId, role }) => [secrets.digest(token.reveal()), userId, role]);
  const digestNamed = (values: Readonly<Record<string, Secret | undefined>> = {}) => {
    const names = Object.keys(values).sort();
    return secrets.digest(`${names.join()} ${digest(names.map((name) => values[name]))}`);
  };
  const certificate = readGivenCertificate(settings);
  const { s3 } = cluster.blobs;
  return new Map([
    ["agent.tokens", secrets.digest(JSON.stringify(holders))],
    ["workflow.token", digest([workflow.token])],
    ["workflow.secrets", digestNamed(workflow.secrets)],
    ...providers.map(({ id, credential, headers }): [string, string] => [
      `providers.${id}`,
      secrets.digest(`${digest([credential])} ${digestNamed(headers)}`),
    ]),
    ...Object.entries(mcpServers).map(([id, { env, headers }]): [string, string] => [
      `mcpServers.${id}`,
      digestNamed(env ?? headers),
    ]),
    ["cluster.postgres", digest([cluster.postgres.url, cluster.postgres.directUrl])],
    ["cluster.redis", digest([cluster.redis.url])],
    ["cluster.tls", digestNamed(cluster.tls)],
    ["cluster.blobs.s3", digest([s3?.accessKeyId, s3?.secretAccessKey])],
    ["https.cert", secrets.digest(JSON.stringify([certificate?.cert, certificate?.key]))],
    ["agentServiceToken", digest([await findOwnToken(secrets, "agent")])],
    ["workflowServiceToken", digest([await findOwnToken(secrets, "workflow")])],
  ]);
}

/** The names whose secrets differ. A provider that is only in one of both is no rotation. */
export function changedSecrets(before: SecretDigests, after: SecretDigests): readonly string[] {
  return [...after].flatMap(([name, digest]) => (before.has(name) && before.get(name) !== digest ? [name] : []));
}
