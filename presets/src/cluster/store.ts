import { fileBlobs } from "@portico/adapters/blobs/files";
import { s3Blobs } from "@portico/cluster/blobs/s3";
import { redisBus } from "@portico/cluster/bus/redis";
import { bullmqEngine } from "@portico/cluster/engine/bullmq";
import { postgresLog } from "@portico/cluster/log/postgres";
import { redisPresence } from "@portico/cluster/presence/redis";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { aesGcmSealing } from "@portico/adapters/sealing/aes-gcm";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { type Adapter, type Live, type Port, type Secret, selectLive } from "@portico/core";
import type { ClusterSettings } from "../settings/cluster.ts";
import type { PlatformSettings } from "../settings/platform.ts";
import { hasTls } from "./problems.ts";
import { instanceIdentity, instanceKey, instanceKeyRotation } from "../platform/instance.ts";
import type { RotatingSettings } from "../settings/rotating-settings.ts";

/**
 * How long a new owner's token only verifies signatures: so long all processes have to read it. Kubernetes brings a changed secret to all pods
 * within about a minute.
 */
const SIGNING_DELAY_MS = 120_000;

/** The stores and users of a cluster: PostgreSQL, Redis, and S3 or a shared folder. The settings must have no `clusterProblems`. */
export function clusterStore(
  settings: PlatformSettings,
  ports?: readonly Port<any>[],
  rotating?: Live<RotatingSettings>,
): readonly Adapter[] {
  const { cluster, instance, agent } = settings;
  const tokens = { tokens: agent.tokens, rotating };
  const { otherKeys } = instance;
  const key = needed(instance.key);
  const all: readonly Adapter[] = [
    instanceIdentity(tokens),
    postgresRecords({
      ...postgresOptions(cluster),
      rotation: rotating && selectLive(rotating, (next) => postgresOptions(next.cluster)),
    }),
    postgresLog({}),
    ioredisServer({
      ...redisOptions(cluster),
      rotation: rotating && selectLive(rotating, (next) => redisOptions(next.cluster)),
    }),
    redisBus(),
    redisPresence({}),
    bullmqEngine({ leaseMs: cluster.leaseMs, executes: cluster.executes }),
    blobs(cluster, rotating),
    recordSecrets({ key, otherKeys }),
    hmacSigning({ key: instanceKey(tokens), rotation: instanceKeyRotation(tokens, SIGNING_DELAY_MS) }),
    aesGcmSealing({ key, otherKeys }),
  ];
  return ports ? all.filter(({ spec }) => ports.some(({ id }) => id === spec.port.id)) : all;
}

/** How a process connects to PostgreSQL. It refuses a schema that `portico migrate` has not made. */
export function postgresOptions({ postgres, tls }: ClusterSettings) {
  const { url, directUrl, ...options } = postgres;
  return { url: needed(url), ...(directUrl && { directUrl }), ...options, migrate: false, ...(hasTls(tls) && { tls }) };
}

/** How a process connects to Redis. */
export function redisOptions({ redis, tls }: ClusterSettings) {
  const { url, prefix } = redis;
  return { url: needed(url), prefix, ...(hasTls(tls) && { tls }) };
}

function blobs({ blobs: { s3, directory } }: ClusterSettings, rotating: Live<RotatingSettings> | undefined): Adapter {
  if (!s3) return fileBlobs({ dir: needed(directory) });
  // Another bucket takes effect at the next start, with its keys.
  const keysOf = ({ cluster: { blobs } }: RotatingSettings) =>
    blobs.s3?.endpoint === s3.endpoint && blobs.s3.bucket === s3.bucket ? blobs.s3 : undefined;
  return s3Blobs({ ...s3, rotation: rotating && selectLive(rotating, keysOf) });
}

/** `clusterProblems` has refused settings without it. */
function needed<T extends string | Secret>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("The settings of the cluster are not complete");
  return value;
}
