/** An example of each group of settings, as YAML of a configuration file. A test reads each of them as a service does. */
export const SETTING_EXAMPLES: Readonly<Record<string, string>> = {
  "The instance":
    "instance: { mode: remote, key: { env: PORTICO_INSTANCE_KEY } }\ndataDir: /srv/portico/data\nshutdownGraceMs: 60000",
  providers:
    "providers:\n  - id: main\n    protocol: messages\n    baseUrl: https://api.example/v1\n    credential: { env: MAIN_KEY }\n    models: [m-large, m-small]\n    retry: { attempts: 3 }",
  log: "log: { level: info, format: json }",
  rotation: "rotation: { overlapMs: 600000 }",
  telemetry: "telemetry:\n  otlp: { endpoint: https://collector.example:4318, headers: { env: COLLECTOR_HEADERS } }",
  audit: "audit: { keep: 400d, trustedProxies: [10.0.0.0/8] }",
  usage: "usage: { timeZone: Europe/Berlin }",
  prices: "prices:\n  currency: EUR\n  models:\n    - { model: m-large, from: 2026-11-01, input: 2, output: 10 }",
  limits: "limits:\n  instance: { moneyPerDay: 200 }\n  user: { tokensPerDay: 2000000, turnsAtOnce: 8 }",
  https: "https: { cert: /etc/ssl/portico.pem, key: /etc/ssl/portico.key }",
  proxy: "proxy: { listen: { port: 49152 }, processes: auto }",
  workflow:
    "workflow:\n  listen: { port: 49153 }\n  publicUrl: https://workflows.example\n  definitionsDir: workflows\n  secrets: { TRACKER: { file: $CREDENTIALS_DIRECTORY/tracker } }\n  keepRuns: 90d",
  agent:
    "agent:\n  listen: { port: 49154 }\n  publicUrl: https://agents.example\n  tokens:\n    - { token: { env: AGENT_SERVICE_TOKEN }, userId: ada, role: owner }\n  keepRuns: 365d\n  editable: false",
  probes: "probes: { listen: { host: 0.0.0.0, port: 9464 } }",
  mcpServers:
    "mcpServers:\n  shop: { url: https://mcp.example/mcp, headers: { authorization: { file: $CREDENTIALS_DIRECTORY/shop } } }",
  outbound: "outbound: { proxy: http://proxy.example:3128, noProxy: [.corp.example] }",
  notifications:
    "notifications:\n  url: https://relay.example/portico\n  secret: { env: NOTIFICATIONS_SECRET }\n  on: [schedule.failing, decision.waiting]\n  decisionMinutes: 30",
  cluster:
    "cluster:\n  postgres: { url: { env: PORTICO_POSTGRES_URL }, poolSize: 20 }\n  redis: { url: { env: PORTICO_REDIS_URL } }\n  blobs: { directory: /srv/shared/files }",
};
