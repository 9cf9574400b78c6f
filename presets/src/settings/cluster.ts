import { filePath, fromEnv, keySecret, milliseconds, secret } from "@portico/core";
import * as v from "valibot";
import { text } from "./listen.ts";

/** The surfaces that a process of a cluster can serve. */
export const CLUSTER_SURFACES = ["proxy", "workflow", "agent"] as const;

const tlsSchema = v.strictObject({
  ca: v.optional(v.pipe(secret(), v.description("Authorities that sign the certificates of both servers, as PEM."))),
  cert: v.optional(v.pipe(secret(), v.description("Certificate that the processes present, as PEM."))),
  key: v.optional(v.pipe(secret(), v.description("Private key of `cert`, as PEM without a passphrase."))),
});

const postgresSchema = v.strictObject({
  url: v.optional(
    fromEnv("PORTICO_POSTGRES_URL", secret(), "PostgreSQL of the cluster: `postgres://user:password@host:port/database`."),
  ),
  directUrl: v.optional(
    fromEnv(
      "PORTICO_POSTGRES_DIRECT_URL",
      secret(),
      "The same database without a pooler, for the connection that holds the lease, and for `portico migrate`. Default: `url`.",
    ),
  ),
  schema: v.optional(fromEnv("PORTICO_POSTGRES_SCHEMA", text(), "Schema of the tables."), "portico"),
  poolSize: v.optional(
    fromEnv(
      "PORTICO_POSTGRES_POOL_SIZE",
      v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)),
      "Connections of each process, in addition to the one that holds its lease.",
    ),
    20,
  ),
  preparedStatements: v.optional(
    fromEnv(
      "PORTICO_POSTGRES_PREPARED_STATEMENTS",
      v.boolean(),
      "Whether connections prepare statements that they repeat. `false` is for poolers that lose prepared statements.",
    ),
    true,
  ),
});

const redisSchema = v.strictObject({
  url: v.optional(
    fromEnv("PORTICO_REDIS_URL", secret(), "Redis of the cluster: `redis://user:password@host:port/database`, or `rediss://…`."),
  ),
  prefix: v.optional(fromEnv("PORTICO_REDIS_PREFIX", text(), "Beginning of all keys and channels."), "portico"),
});

const s3Schema = v.strictObject({
  endpoint: fromEnv("PORTICO_S3_ENDPOINT", text(), "Address of the S3 service."),
  bucket: fromEnv("PORTICO_S3_BUCKET", text(), "Bucket of attachments and media."),
  region: v.optional(
    fromEnv("PORTICO_S3_REGION", v.pipe(v.string(), v.regex(/^[\w-]+$/, "letters, digits, _ and -")), "Region of the bucket."),
    "us-east-1",
  ),
  accessKeyId: fromEnv("PORTICO_S3_ACCESS_KEY_ID", keySecret(), "Id of the access key."),
  secretAccessKey: fromEnv("PORTICO_S3_SECRET_ACCESS_KEY", keySecret(), "Secret of the access key."),
  prefix: v.optional(fromEnv("PORTICO_S3_PREFIX", text(), "Beginning of all keys in the bucket.")),
  silenceMs: v.optional(
    fromEnv(
      "PORTICO_S3_SILENCE_MS",
      milliseconds(1),
      "After this time without a sign of the S3 service, its callers get an error.",
    ),
    30_000,
  ),
});

/** What the processes of the preset `cluster` share (open points 11). Other presets ignore it. */
export const clusterSchema = v.optional(
  v.strictObject({
    postgres: v.optional(postgresSchema, {}),
    redis: v.optional(redisSchema, {}),
    tls: v.optional(tlsSchema, {}),
    blobs: v.optional(
      v.strictObject({
        s3: v.optional(s3Schema),
        directory: v.optional(
          fromEnv(
            "PORTICO_CLUSTER_BLOBS_DIR",
            filePath(),
            "Folder of attachments and media, on a file system that all machines share.",
          ),
        ),
      }),
      {},
    ),
    documents: v.optional(
      fromEnv(
        "PORTICO_CLUSTER_DOCUMENTS",
        v.picklist(["database", "directory"]),
        "Where agents and workflow definitions are. `directory`: in `agent.agentsDir` and `workflow.definitionsDir`, on a file system that all machines share.",
      ),
      "database",
    ),
    surfaces: v.optional(
      fromEnv(
        "PORTICO_CLUSTER_SURFACES",
        v.array(v.picklist(CLUSTER_SURFACES)),
        "The surfaces that this process serves. With none, it only executes work.",
      ),
      [...CLUSTER_SURFACES],
    ),
    executes: v.optional(fromEnv("PORTICO_CLUSTER_EXECUTES", v.boolean(), "Whether this process executes work."), true),
    leaseMs: v.optional(
      fromEnv(
        "PORTICO_CLUSTER_LEASE_MS",
        milliseconds(1000),
        "After this time without a sign of life, other processes take over the work of a process.",
      ),
      15_000,
    ),
  }),
  {},
);

/** The settings of a cluster, after parsing. */
export type ClusterSettings = v.InferOutput<typeof clusterSchema>;
