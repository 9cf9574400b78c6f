// The document is a script beside this one, so that the page can be opened from a folder, too, and has nothing to fetch.
SwaggerUIBundle({
  spec: globalThis.openapi,
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  // The service that it describes is somewhere else, and its credentials are no matter of this page.
  supportedSubmitMethods: [],
});
