import { createHash } from "node:crypto";
import { acceptedCoding, checkConditions, definePlugin, type RequestHead } from "@portico/core";
import { contentSecurityPolicy } from "./content-security-policy.ts";
import { webConsoleConfig } from "./config.ts";
import { webConsoleContract } from "./contract.ts";
import { BUILT, readBuilt } from "./read-built.ts";

export type { WebConsoleOptions } from "./config.ts";

/** The paths of the files that a build has in addition to its page. Other paths are not served. */
const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** The plugin's name. */
export const WEB_CONSOLE = "web-console";

/**
 * The web console at `/` of surface `agent`. The page loads without a credential, but can do nothing until a user has signed in. It calls the
 * areas of surface `agent`, and needs the plugin `listeners` on the same surface.
 */
export const webConsole = definePlugin({
  name: WEB_CONSOLE,
  summary: "The web console's own files.",
  config: webConsoleConfig,
  needs: {},
  contract: webConsoleContract,
  setup: (_given, { urls = () => ({}), built = BUILT }) => ({
    async page({ head }) {
      const page = await readBuilt(new URL("index.html", built));
      if (!page) return notBuilt();
      const policy = contentSecurityPolicy(Object.values(urls()));
      // The policy changes with the listeners' ports, so a cached page must not keep an old policy.
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
      const packed = acceptedCoding(head, ["gzip"]) ? await readBuilt(new URL(`${path.href}.gz`)) : undefined;
      const file = packed ?? (await readBuilt(path));
      if (!file) throw fail.console_file_not_found();
      return answer(head, file, {
        "content-type": type,
        // The file's name contains a digest of its content.
        "cache-control": "public, max-age=31536000, immutable",
        etag: packed ? `"${params.file}.gz"` : `"${params.file}"`,
        vary: "accept-encoding",
        ...(packed && { "content-encoding": "gzip" }),
      });
    },
  }),
});

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
