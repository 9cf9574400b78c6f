import { checkRedisPrefix, toRedisAddress } from "@portico/cluster/redis/redis-address";
import { checkConnectionUrl, checkSchema, createStoreAddress } from "@portico/cluster/stores/check-settings";
import { createTlsContext } from "@portico/cluster/tls-context";
import type { ClusterSettings } from "../settings/cluster.ts";
import type { PlatformSettings } from "../settings/platform.ts";

/** What keeps a process of a cluster from starting with these settings, one line each, in the form of other mistakes of a configuration. */
export function clusterProblems(settings: PlatformSettings): readonly string[] {
  const { cluster, instance, agent, workflow } = settings;
  const { postgres, redis, blobs } = cluster;
  const problems: string[] = [];
  const need = (isThere: boolean, key: string, what: string) => {
    if (!isThere) problems.push(`${key}: the preset cluster needs ${what}`);
  };
  need(postgres.url !== undefined, "cluster.postgres.url", "PostgreSQL (PORTICO_POSTGRES_URL)");
  need(redis.url !== undefined, "cluster.redis.url", "Redis (PORTICO_REDIS_URL)");
  need(
    (blobs.s3 === undefined) !== (blobs.directory === undefined),
    "cluster.blobs",
    "either s3 or directory, for attachments and media",
  );
  need(instance.key !== undefined, "instance.key", "the same key in every process (PORTICO_INSTANCE_KEY)");
  need(
    agent.tokens.some(({ role }) => role === "owner"),
    "agent.tokens",
    "an owner's token, because a cluster creates no tokens",
  );
  need(workflow.token !== undefined, "workflow.token", "a token (WORKFLOW_SERVICE_TOKEN), because a cluster creates no tokens");
  for (const [area, { driver }] of [["agent", agent.documents] as const, ["workflow", workflow.documents] as const]) {
    if (driver !== "fs") problems.push(`${area}.documents: in a cluster, cluster.documents says where documents are`);
  }
  return [...problems, ...invalidOptions(cluster)];
}

/** Values that the adapters would refuse. Loads no driver: commands that only read settings use this, too. */
function invalidOptions({ postgres, redis, tls, blobs }: ClusterSettings): readonly string[] {
  const problems: string[] = [];
  const check = (key: string, run: () => unknown) => {
    try {
      run();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      problems.push(`${key}: ${error.message}`);
    }
  };
  for (const key of ["url", "directUrl"] as const) {
    const url = postgres[key];
    if (url) check(`cluster.postgres.${key}`, () => checkConnectionUrl(url.reveal(), hasTls(tls)));
  }
  check("cluster.postgres.schema", () => checkSchema(postgres.schema));
  if (redis.url) check("cluster.redis.url", () => toRedisAddress(redis.url!.reveal()));
  check("cluster.redis.prefix", () => checkRedisPrefix(redis.prefix));
  if (hasTls(tls)) check("cluster.tls", () => createTlsContext("PostgreSQL and Redis", tls));
  if (blobs.s3) check("cluster.blobs.s3", () => createStoreAddress(blobs.s3!));
  return problems;
}

/** Whether the settings say anything about TLS. */
export function hasTls({ ca, cert, key }: ClusterSettings["tls"]): boolean {
  return [ca, cert, key].some((each) => each !== undefined);
}
