/// The requests of this generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `server/discover`
    Discover,
    /// `tools/list`
    ToolsList,
    /// `tools/call`
    ToolsCall,
    /// `tasks/get`
    TasksGet,
    /// `tasks/update`
    TasksUpdate,
    /// `tasks/cancel`
    TasksCancel,
    /// `subscriptions/listen`
    SubscriptionsListen,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Discover,
        Self::ToolsList,
        Self::ToolsCall,
        Self::TasksGet,
        Self::TasksUpdate,
        Self::TasksCancel,
        Self::SubscriptionsListen,
    ];

    /// The method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::ToolsList => "tools/list",
            Self::ToolsCall => "tools/call",
            Self::TasksGet => "tasks/get",
            Self::TasksUpdate => "tasks/update",
            Self::TasksCancel => "tasks/cancel",
            Self::SubscriptionsListen => "subscriptions/listen",
        }
    }

    /// The method of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// Whether it is about a task, and so only for clients that declare the extension.
    pub const fn is_about_a_task(self) -> bool {
        matches!(self, Self::TasksGet | Self::TasksUpdate | Self::TasksCancel)
    }
}
