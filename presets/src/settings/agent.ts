import { filePath, fromEnv } from "@portico/core";
import * as v from "valibot";
import { listenSchema } from "./listen.ts";
import { keySecret, milliseconds, origin, text } from "./scalar.ts";

const tokenSchema = v.pipe(
  v.strictObject({
    token: v.pipe(keySecret(), v.description("The token itself.")),
    userId: v.optional(v.pipe(text(), v.description("Who holds it; a `service` is no user and has none."))),
    role: v.pipe(v.picklist(["owner", "member", "service"]), v.description("What its holder may do.")),
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
    agentsDir: v.optional(
      fromEnv("PORTICO_AGENTS_DIR", v.pipe(filePath(), v.description("Folder with one folder per agent."))),
      "agents",
    ),
    allowedOrigins: v.optional(
      fromEnv(
        "PORTICO_ALLOWED_ORIGINS",
        v.pipe(v.array(origin()), v.description("Origins of web pages that may call the agent service, beside its own.")),
      ),
      [],
    ),
    console: v.optional(
      fromEnv(
        "PORTICO_CONSOLE",
        v.pipe(
          v.boolean(),
          v.description("Whether the web console is served at `/`; default: in `local` it is, in `agent` not."),
        ),
      ),
    ),
    webhooks: v.optional(
      v.strictObject({
        management: v.optional(
          fromEnv(
            "PORTICO_WEBHOOK_MANAGEMENT",
            v.pipe(
              v.boolean(),
              v.description("Whether the owner can manage agent webhooks here; without, what is configured still triggers."),
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
              v.description("Events that one agent works on at once; the others wait in line."),
            ),
          ),
          4,
        ),
        timeoutMs: v.optional(
          fromEnv(
            "PORTICO_WEBHOOK_TIMEOUT_MS",
            v.pipe(milliseconds(1000), v.description("How long the work on one event may take.")),
          ),
          1_800_000,
        ),
      }),
      {},
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
            "Tokens of the agent service. The first owner's is the instance access token; without one it is made at the first start.",
          ),
        ),
      ),
      [],
    ),
  }),
  {},
);
