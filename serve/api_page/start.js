"use strict";

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "none",
  // Nothing is sent to anybody but this server.
  validatorUrl: null,
});
