import { type ports, record } from "@portico/core";
import { validateHeaderName, validateHeaderValue } from "node:http";
import { isRecord } from "@portico/core/contract";
import * as v from "valibot";
import type { AddressGuard } from "@portico/adapters/outbound/address-guard";
import { bodyFaults } from "./body-faults.ts";
import { readUrl } from "./read-url.ts";

const scalar = v.union([v.string(), v.number(), v.boolean()]);
const part = v.strictObject({
  name: v.pipe(v.string(), v.description("The name of the field.")),
  value: v.optional(v.pipe(scalar, v.description("The value of the field: a text, a number, true or false."))),
  bytes: v.optional(v.pipe(v.string(), v.description("Instead of `value`: bytes in base64."))),
  file: v.optional(v.pipe(v.unknown(), v.description("Instead of `value`: a file of the run."))),
  filename: v.optional(v.pipe(v.string(), v.description("Makes the part a file with this name."))),
  type: v.optional(v.pipe(v.string(), v.description("The media type of the part."))),
});
const STATUS = 'Write a status such as `204`, or a range such as `"200-299"`';
const status = v.pipe(v.number(), v.integer(), v.minValue(100), v.maxValue(599));
const statusRange = v.pipe(v.string(), v.regex(/^[1-5]\d\d(?:-[1-5]\d\d)?$/, STATUS));

export const httpInput = v.strictObject({
  method: v.optional(
    v.pipe(v.picklist(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]), v.description("Default `GET`.")),
    "GET",
  ),
  url: v.pipe(v.string(), v.description("An http or https URL on the public internet, or one that the configuration allows.")),
  headers: v.optional(
    v.pipe(record(v.string(), scalar), v.description("Headers by name; headers of the connection cannot be set.")),
  ),
  query: v.optional(
    v.pipe(
      record(v.string(), v.union([scalar, v.array(scalar)])),
      v.description("Query parameters by name, added to the URL's own. A list repeats its name."),
    ),
  ),
  body: v.optional(
    v.pipe(v.unknown(), v.description("A text is sent unchanged, anything else as JSON. `GET` and `HEAD` have no body.")),
  ),
  form: v.optional(
    v.pipe(
      record(v.string(), v.union([scalar, v.array(scalar)])),
      v.description("Fields by name, sent as `application/x-www-form-urlencoded` instead of `body`. A list repeats its name."),
    ),
  ),
  multipart: v.optional(
    v.pipe(
      v.array(part),
      v.minLength(1),
      v.description(
        "Parts, sent as `multipart/form-data` instead of `body`: `name`, and `value` (a text, number, true or false), `bytes` (base64) or `file` (a file of the run). `filename` makes a part a file. `type` is its media type.",
      ),
    ),
  ),
  bytes: v.optional(
    v.pipe(
      v.string(),
      v.description(
        "Bytes in base64, sent decoded instead of `body`. The type is `application/octet-stream` unless `headers` name another.",
      ),
    ),
  ),
  file: v.optional(
    v.pipe(
      v.unknown(),
      v.description(
        "A file of the run, sent instead of `body`: such as `${{ nodes.ID.output.file }}`. The type is the file's unless `headers` name another.",
      ),
    ),
  ),
  response: v.optional(
    v.pipe(
      v.picklist(["value", "file"]),
      v.description(
        "`file` saves the body of the answer as a file of the run: `output.file`. Default `value`, which does so with a body over 4 MiB.",
      ),
    ),
  ),
  filename: v.optional(
    v.pipe(v.string(), v.description("The name of the saved file. Default: what the answer or the URL calls it.")),
  ),
  expect: v.optional(
    v.pipe(
      v.array(v.union([status, statusRange], STATUS)),
      v.description('Statuses (`204`) and ranges (`"200-299"`, the default) that count as success.'),
    ),
  ),
  key: v.optional(
    v.pipe(
      v.union([v.boolean(), v.literal("node")]),
      v.description(
        "Sends `Idempotency-Key`, and makes the node repeatable, as `GET` and `HEAD` are; default false. With `true` each attempt has a key of its own, which is sent again after a crash: a server may act again on a retry. With `node` all attempts have one: a server that knows such keys acts once.",
      ),
    ),
    false,
  ),
});

export type HttpInput = v.InferOutput<typeof httpInput>;

/** Headers of the connection, and headers that the sender computes. */
const NOT_AN_AUTHORS = new Set(
  "connection content-length expect host http2-settings keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split(
    " ",
  ),
);

/**
 * Problems of the headers, and of method and bodies together. Messages contain no value. `isWritten`: of a definition, whose templates are not
 * evaluated yet.
 */
export function requestFaults(
  input: Readonly<Record<string, unknown>>,
  { isWritten }: { readonly isWritten: boolean },
): ports.NodeFault[] {
  const { headers, key } = input;
  const faults: ports.NodeFault[] = Object.entries(isRecord(headers) ? headers : {}).flatMap(([name, value]) => {
    const message = headerFault(name, value, { hasKey: key === true || key === "node", isWritten });
    return message === undefined ? [] : [{ path: ["headers", name], message }];
  });
  return [...faults, ...bodyFaults(input, isWritten)];
}

/** Problems of `url` that are known before its names are resolved. Empty for a URL with templates. */
export function urlFaults(written: unknown, guard: AddressGuard): ports.NodeFault[] {
  if (typeof written !== "string" || written.includes("${{")) return [];
  const url = readUrl(written);
  if (typeof url === "string") return [{ path: ["url"], message: url }];
  if (!guard.refuses(url.hostname, portOf(url))) return [];
  const message = `${url.host} is an address that this instance's workflows may not reach (workflow.http.allow can allow it)`;
  return [{ path: ["url"], message }];
}

export function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

function headerFault(
  name: string,
  value: unknown,
  { hasKey, isWritten }: { readonly hasKey: boolean; readonly isWritten: boolean },
): string | undefined {
  try {
    validateHeaderName(name);
    if (!isWritten || !String(value).includes("${{")) validateHeaderValue(name, String(value));
  } catch {
    return "This is no header that can be sent";
  }
  if (NOT_AN_AUTHORS.has(name.toLowerCase())) return "This header belongs to the connection and is not a definition's to set";
  return hasKey && name.toLowerCase() === "idempotency-key" ? "`key` sets this header" : undefined;
}
