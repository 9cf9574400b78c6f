import { fromEnv, record, secret } from "@portico/core";
import * as v from "valibot";

/** unstorage drivers in which a service can store documents. */
export const DOCUMENT_DRIVERS = [
  "fs",
  "azure-app-configuration",
  "azure-cosmos",
  "azure-key-vault",
  "azure-storage-blob",
  "azure-storage-table",
  "cloudflare-kv-http",
  "db0",
  "deno-kv",
  "deno-kv-node",
  "github",
  "http",
  "mongodb",
  "netlify-blobs",
  "planetscale",
  "redis",
  "s3",
  "upstash",
  "vercel-blob",
  "vercel-kv",
] as const;

/** Where the documents of an area are stored: in the folder of the setting `dirKey`, or in the store of another driver. */
export function documentsSchema(area: string, what: string, dirKey: string) {
  const driver = v.pipe(
    v.picklist(DOCUMENT_DRIVERS),
    v.description(`unstorage driver for the ${what}. \`fs\` stores them in the folder \`${dirKey}\`.`),
  );
  const options = v.pipe(
    record(v.string(), v.union([v.number(), v.boolean(), secret(), record(v.string(), secret())])),
    v.description("Options of a driver other than `fs`. Every text may be a secret."),
  );
  return v.optional(
    v.strictObject({
      driver: v.optional(fromEnv(`PORTICO_${area}_DOCUMENTS_DRIVER`, driver), "fs"),
      options: v.optional(fromEnv(`PORTICO_${area}_DOCUMENTS_OPTIONS`, options), {}),
    }),
    {},
  );
}
