import { randomBytes } from "node:crypto";
import type { S3BlobsOptions } from "@portico/cluster/blobs/s3";
import { Secret } from "@portico/core";

/**
 * Options for blobs in an empty place of the bucket that `PORTICO_TEST_S3` names, `https://<key id>:<key>@<host>/<bucket>?region=<region>`.
 * Undefined where it names none.
 */
export function s3ServerOptions(): S3BlobsOptions | undefined {
  const named = process.env.PORTICO_TEST_S3;
  if (!named) return undefined;
  const { origin, pathname, searchParams, username, password } = new URL(named);
  return {
    endpoint: origin,
    bucket: pathname.slice(1),
    region: searchParams.get("region") ?? "us-east-1",
    accessKeyId: new Secret(decodeURIComponent(username)),
    secretAccessKey: new Secret(decodeURIComponent(password)),
    prefix: `portico-test-${randomBytes(8).toString("hex")}/`,
  };
}
