import { filePath, fromEnv, parseDuration, record } from "@portico/core";
import * as v from "valibot";
import { documentsSchema } from "./documents.ts";
import { keeping } from "./keeping.ts";
import { listenSchema, publicUrlSchema } from "./listen.ts";
import { keySecret, milliseconds, origin, text } from "./scalar.ts";
import { toolPolicySchema } from "./tool-policy.ts";

const tokenSchema = v.pipe(
  v.strictObject({
    token: v.pipe(keySecret(), v.description("The token itself.")),
    userId: v.optional(v.pipe(text(), v.description("The user of the token. A token of role `service` has no user."))),
    role: v.pipe(v.picklist(["owner", "member", "service"]), v.description("The permissions of the token.")),
  }),
  v.forward(
    v.check(
      ({ role, userId }) => (role === "service") === (userId === undefined),
      "a user id for owner and member, and none for service",
    ),
    ["userId"],
  ),
);

/** The agent service (open points 1). */
export const agentSchema = v.optional(
  v.strictObject({
    listen: listenSchema("AGENT"),
    publicUrl: publicUrlSchema("AGENT"),
    agentsDir: v.optional(
      fromEnv("PORTICO_AGENTS_DIR", v.pipe(filePath(), v.description("Folder with one subfolder per agent."))),
      "agents",
    ),
    editable: v.optional(
      fromEnv(
        "PORTICO_AGENT_EDITABLE",
        v.pipe(
          v.boolean(),
          v.description(
            "Whether the owner can create, change and remove agents by calls and in the web console. Webhooks are another setting: `agent.webhooks.management`.",
          ),
        ),
      ),
      true,
    ),
    documents: documentsSchema("AGENT", "agents", "agent.agentsDir"),
    context: v.optional(
      v.strictObject({
        tokens: v.optional(
          fromEnv(
            "PORTICO_AGENT_CONTEXT_TOKENS",
            v.pipe(
              v.number(),
              v.integer(),
              v.minValue(1000),
              v.description(
                "Most tokens of a request to a model. Default: 120000, or less if the provider's list says that the model accepts less.",
              ),
            ),
          ),
        ),
        tokensOf: v.optional(
          v.pipe(
            record(text(), v.pipe(v.number(), v.integer(), v.minValue(1000))),
            v.description("The same for single models, by model name."),
          ),
        ),
        summarize: v.optional(
          fromEnv(
            "PORTICO_AGENT_SUMMARIZE",
            v.pipe(
              v.boolean(),
              v.description("Whether the model writes a summary of the oldest turns of a conversation when they no longer fit."),
            ),
          ),
          true,
        ),
        promptCache: v.optional(
          fromEnv(
            "PORTICO_AGENT_PROMPT_CACHE",
            v.pipe(
              v.boolean(),
              v.description("Whether requests of the Messages protocol contain marks for the provider's prompt cache."),
            ),
          ),
          true,
        ),
        resultCharacters: v.optional(
          fromEnv(
            "PORTICO_AGENT_RESULT_CHARACTERS",
            v.pipe(
              v.number(),
              v.integer(),
              v.minValue(100),
              v.description("Most characters of the result of a tool that a model gets."),
            ),
          ),
          50_000,
        ),
      }),
      {},
    ),
    backgroundRetries: v.optional(
      fromEnv(
        "PORTICO_AGENT_BACKGROUND_RETRIES",
        v.pipe(
          v.array(v.pipe(v.string(), v.check(isRetryDelay, "a duration from 1s to 24h, such as 5m"))),
          v.maxLength(20),
          v.description(
            "Pauses before further attempts of a background turn whose model's provider was away. An empty list switches them off.",
          ),
        ),
      ),
      ["1m", "5m", "15m", "30m"],
    ),
    keepRuns: v.optional(
      fromEnv(
        "PORTICO_AGENT_KEEP_RUNS",
        v.pipe(
          keeping(),
          v.description(
            "How long runs of agents are kept after their last turn, with their receipts, conversations and deliveries; at least 24h.",
          ),
        ),
      ),
      "forever",
    ),
    keepAttachments: v.optional(
      fromEnv(
        "PORTICO_AGENT_KEEP_ATTACHMENTS",
        v.pipe(keeping(), v.description("How long attachments are kept after their upload, or after the last query with them.")),
      ),
      "forever",
    ),
    keepMedia: v.optional(
      fromEnv(
        "PORTICO_AGENT_KEEP_MEDIA",
        v.pipe(keeping(), v.description("How long media are kept after their upload, or after the last query with them.")),
      ),
      "forever",
    ),
    allowedOrigins: v.optional(
      fromEnv(
        "PORTICO_ALLOWED_ORIGINS",
        v.pipe(v.array(origin()), v.description("Origins of web pages that may call the agent service, in addition to its own.")),
      ),
      [],
    ),
    console: v.optional(
      fromEnv(
        "PORTICO_CONSOLE",
        v.pipe(
          v.boolean(),
          v.description("Whether the web console is served at `/`. Default: the preset's (`local`: yes, `agent`: no)."),
        ),
      ),
    ),
    toolPolicy: toolPolicySchema,
    webhooks: v.optional(
      v.strictObject({
        management: v.optional(
          fromEnv(
            "PORTICO_WEBHOOK_MANAGEMENT",
            v.pipe(
              v.boolean(),
              v.description("Whether the owner can manage agent webhooks. If false, configured webhooks still accept triggers."),
            ),
          ),
          true,
        ),
        concurrencyPerAgent: v.optional(
          fromEnv(
            "PORTICO_WEBHOOK_CONCURRENCY_PER_AGENT",
            v.pipe(
              v.number(),
              v.integer(),
              v.minValue(1),
              v.description("Events that one agent processes at the same time; others wait in a queue."),
            ),
          ),
          4,
        ),
        timeoutMs: v.optional(
          fromEnv(
            "PORTICO_WEBHOOK_TIMEOUT_MS",
            v.pipe(milliseconds(1000), v.description("Maximum duration of the work on one event.")),
          ),
          1_800_000,
        ),
      }),
      {},
    ),
    media: v.optional(
      v.strictObject({
        accelPrefix: v.optional(
          fromEnv(
            "PORTICO_MEDIA_ACCEL_PREFIX",
            v.pipe(
              v.string(),
              v.regex(/^(?:\/[\w-][\w.-]*)+$/, "a path such as /media-files"),
              v.description(
                "Path at which nginx serves the folder of the files to itself. If it is set, nginx sends the bytes of media, and all their readers must come through nginx. Needs files on a disk; with S3, the service sends the bytes.",
              ),
            ),
          ),
        ),
      }),
      {},
    ),
    sessionIssuesMs: v.optional(
      fromEnv(
        "PORTICO_AGENT_SESSION_ISSUES_MS",
        v.pipe(
          milliseconds(60_000),
          v.description(
            "How long execution grants, safe tokens and webhook secrets are valid at most that the session of a sign-in link issues. Default: as long as those that the owner's token issues.",
          ),
        ),
      ),
    ),
    tokens: v.optional(
      fromEnv(
        "PORTICO_AGENT_TOKENS",
        v.pipe(
          v.array(tokenSchema),
          v.check(
            (tokens) => new Set(tokens.map(({ token }) => token.reveal())).size === tokens.length,
            "another token for each holder",
          ),
          v.description(
            "Tokens of the agent service. The first owner's token is the instance access token. If no token belongs to an owner, the first start creates it.",
          ),
        ),
      ),
      [],
    ),
  }),
  {},
);

function isRetryDelay(written: string): boolean {
  const ms = parseDuration(written);
  return ms !== undefined && ms >= 1000 && ms <= 24 * 60 * 60_000;
}
