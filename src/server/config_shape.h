/* config_shape.h — the keys of the configuration file: what each may hold, and what is said of it.
 *
 * Private to server; config.c reads what this has checked.
 */
#ifndef SERVER_CONFIG_SHAPE_H
#define SERVER_CONFIG_SHAPE_H

struct shape;

extern const struct shape config_shape;

/* The words of keys that have a choice, in the order of the enums that they stand for; they end
 * with NULL. */
extern const char *const config_log_levels[];
extern const char *const config_log_formats[];
extern const char *const config_disk_quotas[];
extern const char *const config_user_modes[];
extern const char *const config_user_images[];
extern const char *const config_network_modes[];
extern const char *const config_network_outsides[];
extern const char *const config_tls_modes[];
extern const char *const config_tls_client_modes[]; /* enum tls_client_mode */
extern const char *const config_storage_types[];
extern const char *const config_engine_kinds[];
extern const char *const config_kubernetes_gpus[];
extern const char *const config_node_metrics[];
extern const char *const config_kubernetes_networks[]; /* of enum kube_network */
extern const char *const config_kubernetes_users[];    /* of enum kube_users */
extern const char *const config_sign_ups[];            /* 0: off, 1: request */
extern const char *const config_orders[];
extern const char *const config_plugin_scopes[];
extern const char *const config_alert_severities[]; /* the second: errors alone */
extern const char *const config_policies[];

#endif
