import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { checkConditions, defineContract, defineErrors, definePlugin, type Plugin, reply, type RequestHead } from "@portico/core";
import Negotiator from "negotiator";
import * as v from "valibot";
import { packageFile } from "./package-file.ts";
import type { Listeners } from "./platform-options.ts";

/** Where `npm run console` builds it to. */
const BUILT = packageFile("console/");

/** Everything that a build has beside its page, and nothing else can be asked for. */
const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

const errors = defineErrors({ console_file_not_found: { status: 404 } });

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.message, code: error.code }) },
  {
    page: { method: "GET", path: "/", summary: "The web console", success: reply.bytes() },
    file: {
      method: "GET",
      path: "/console/:file",
      summary: "A script, a style or a font of the web console",
      params: v.strictObject({ file: v.string() }),
      success: reply.bytes(),
      errors,
    },
  },
);

export interface WebConsoleOptions {
  /** The page may call these, and its own origin. */
  readonly listeners: Listeners;
  /** A folder with a built console; default: the one that this package ships. */
  readonly built?: URL;
}

/** The web console at `/` of surface `agent`: a page that anybody may load, and that can do nothing until somebody has signed in. */
export function webConsole({ listeners, built = BUILT }: WebConsoleOptions): Plugin {
  const plugin = definePlugin({
    name: WEB_CONSOLE,
    summary: "The web console's own files.",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({
      async page({ head }) {
        const page = await read(new URL("index.html", built));
        if (!page) return notBuilt();
        const policy = contentSecurityPolicy(Object.values(listeners()));
        // The policy changes with the listeners' ports: a page that is kept must not keep an old one.
        const digest = createHash("sha256").update(policy).update(page).digest("base64url");
        return answer(head, page, {
          "content-type": "text/html; charset=utf-8",
          "cache-control": "no-cache",
          etag: `"${digest}"`,
          "content-security-policy": policy,
          "referrer-policy": "no-referrer",
          "cross-origin-opener-policy": "same-origin",
        });
      },
      async file({ head, params, fail }) {
        const [, extension = ""] = /^[\w-]+\.(\w+)$/.exec(params.file) ?? [];
        const type = TYPES[extension];
        if (type === undefined) throw fail.console_file_not_found();
        const path = new URL(`console/${params.file}`, built);
        const packed = takesGzip(head) ? await read(new URL(`${path.href}.gz`)) : undefined;
        const file = packed ?? (await read(path));
        if (!file) throw fail.console_file_not_found();
        return answer(head, file, {
          "content-type": type,
          // Its name has a digest of what is in it.
          "cache-control": "public, max-age=31536000, immutable",
          etag: packed ? `"${params.file}.gz"` : `"${params.file}"`,
          vary: "accept-encoding",
          ...(packed && { "content-encoding": "gzip" }),
        });
      },
    }),
  });
  return plugin({});
}

/** The plugin's name. */
export const WEB_CONSOLE = "web-console";

/** Nothing but what the console's own files need; it talks to this process alone, and nobody frames it. */
function contentSecurityPolicy(urls: readonly string[]): string {
  const origins = [...new Set(urls.map((url) => new URL(url).origin))];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "font-src 'self'",
    // Pictures that are about to be sent are shown from memory.
    "img-src 'self' blob:",
    "media-src 'self' blob:",
    ["connect-src 'self'", ...origins].join(" "),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Markup is made by what was compiled, and by nothing else.
    "require-trusted-types-for 'script'",
    "trusted-types svelte-trusted-html",
  ].join("; ");
}

function takesGzip(head: RequestHead): boolean {
  const negotiator = new Negotiator({ headers: { "accept-encoding": head.header("accept-encoding") } });
  return negotiator.encoding(["gzip", "identity"]) === "gzip";
}

function answer(head: RequestHead, body: Uint8Array<ArrayBuffer>, headers: Record<string, string>): Response {
  const all = { ...headers, "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin" };
  const outcome = checkConditions(head, { etag: headers["etag"] });
  if (outcome === "precondition_failed") return new Response(null, { status: 412 });
  if (outcome === "not_modified") return new Response(null, { status: 304, headers: all });
  return new Response(body, { headers: { ...all, "content-length": String(body.byteLength) } });
}

function notBuilt(): Response {
  return new Response("The web console is not built: run `npm run console` in Portico's repository.\n", {
    status: 503,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", "x-content-type-options": "nosniff" },
  });
}

/** Read at every request: a few hundred kilobytes that the system keeps, and a build shows as soon as it is done. */
async function read(file: URL): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
